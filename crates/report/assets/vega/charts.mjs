// The chart library as pages and `leyden plot` use it: Vega-Lite compiled, parsed and drawn by Vega, with expressions
// interpreted, since pages allow no `eval`. Maps, forces, trees and word clouds are left out.
import { compile } from "vega-lite";
import { transforms } from "vega-dataflow";
import * as encode from "vega-encode";
import { expressionInterpreter } from "vega-interpreter";
import { parse } from "vega-parser";
import * as basic from "vega-transforms";
import { View } from "vega-view";
import * as marks from "vega-view-transforms";

Object.assign(transforms, basic, marks, encode);

// A view of a Vega-Lite specification: drawn into `container`, or for `toSVG` without one.
globalThis.chartView = (spec, { config, container } = {}) => new View(
  parse(compile(spec, { config }).spec, {}, { ast: true }),
  { container, renderer: container ? "svg" : "none", expr: expressionInterpreter },
);
