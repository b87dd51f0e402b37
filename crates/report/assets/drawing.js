// Drawings that stand in the page as SVG, as files of their own: with title, legend and caption, in the light colours.
const drawings = (() => {
  "use strict";

  // What the style sheet says of a drawing's parts, and what holds without it.
  const LOOK = {
    fill: "rgb(0, 0, 0)", stroke: "none", "stroke-width": "1px", opacity: "1", "font-size": "", "font-weight": "400",
  };

  // A copy that needs no style sheet.
  function plain(svg) {
    const copy = svg.cloneNode(true);
    const copies = [copy, ...copy.querySelectorAll("*")];
    [svg, ...svg.querySelectorAll("*")].forEach((part, i) => {
      const look = getComputedStyle(part);
      const told = Object.entries(LOOK).flatMap(([name, without]) => {
        const value = look.getPropertyValue(name);
        return value === without || (name.startsWith("font") && part.tagName !== "text") ? [] : [`${name}:${value}`];
      });
      copies[i].removeAttribute("class");
      if (part !== svg) copies[i].setAttribute("style", told.join(";"));
    });
    const { width, height } = svg.viewBox.baseVal;
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    return { text: new XMLSerializer().serializeToString(copy), width, height, namespace: svg.namespaceURI };
  }

  // Names of the legend in rows of at most `width`.
  function legend(figure, { width, size, top }) {
    let [x, y, out] = [size, top, ""];
    for (const entry of figure.querySelectorAll(".legend li")) {
      const name = entry.textContent.trim();
      const long = name.length * size * 0.6 + 3 * size;
      if (x > size && x + long > width) [x, y] = [size, y + 1.5 * size];
      const colour = getComputedStyle(entry.querySelector(".swatch")).backgroundColor;
      out += `<rect x="${x}" y="${y - size * 0.7}" width="${size}" height="${size * 0.7}" fill="${colour}"/>`;
      out += `<text x="${x + 1.4 * size}" y="${y}">${figures.escaped(name)}</text>`;
      x += long;
    }
    return { out, foot: out ? y + size : top - size };
  }

  // What the page says of itself, for below the drawing.
  function caption() {
    const facts = [...document.querySelectorAll("header .identity div")].map((fact) => {
      const [name, value] = [fact.querySelector("dt"), fact.querySelector("dd")].map((it) => it.textContent.trim());
      return `${name}: ${value}`;
    });
    return [document.querySelector("h1").textContent.trim(), ...facts].join("; ") + ".";
  }

  // The drawing of `figure` as a file. Its own text is small: it is never narrower than two columns.
  function saved(figure, asked) {
    const root = document.documentElement;
    const theme = root.dataset.theme;
    root.dataset.theme = "light"; // until the colours are read; nothing is painted meanwhile
    try {
      const { text, width: inner, height, namespace } = plain(figure.querySelector("svg.lanes"));
      const millimetres = Math.max(175, asked.millimetres);
      const size = asked.size * inner / (asked.width * millimetres / asked.millimetres);
      const width = inner + 2 * size;
      const title = figures.escaped(figure.querySelector("h3").textContent);
      const { out, foot } = legend(figure, { width, size, top: 3.4 * size });
      const family = asked.font.replace(/"/g, "'");
      const high = foot + height + size;
      const svg = `<svg xmlns="${namespace}" width="${width}" height="${high}" viewBox="0 0 ${width} ${high}">`
        + `<rect width="${width}" height="${high}" fill="var(--surface)"/><g font-family="${family}">`
        + `<text x="${size}" y="${1.8 * size}" font-size="${1.1 * size}" font-weight="600" fill="var(--ink)">${title}</text>`
        + `<g font-size="${size}" fill="var(--ink)">${out}</g><g transform="translate(${size},${foot})">${text}</g></g></svg>`;
      return figures.finished(svg, caption(), { width, size, millimetres, font: asked.font });
    } finally {
      if (theme === undefined) delete root.dataset.theme;
      else root.dataset.theme = theme;
    }
  }

  return { saved };
})();
