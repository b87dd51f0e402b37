// Package crashtest cuts the power of your software in `go test`, by `leyden crashtest`.
//
//	func TestOrdersSurvivePowerCuts(t *testing.T) {
//		crashtest.Test{Work: "./work.sh", Check: "./check.sh", States: 500}.Run(t)
//	}
package crashtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Test is a crash test. Work and Check are needed; the zero values of the others have a default.
type Test struct {
	// Work is a shell command: what is recorded.
	Work string
	// Check is a shell command: whether a state is right.
	Check string
	// Setup is a shell command that prepares the file system, before the recording.
	Setup string
	// CheckServer says that the check stays, and reads a line for each state.
	CheckServer bool
	// Files records at the level of files, without root and without a drive, by these rules ("xfs", "ext4", "btrfs" or "posix").
	// Drive, Settings, FS and Size mean nothing then.
	Files string
	// Drive is a scenario, or the name of a bundled one ("devices/tlc-datacenter").
	Drive string
	// Settings are further KEY=VALUE of the drive.
	Settings []string
	// FS is the file system ("ext4"); "none" is the device itself.
	FS string
	// Size is the device's ("64 MiB").
	Size string
	// States are the most that each model tries (500).
	States int
	// RequireStates fails a run in which a model tried fewer.
	RequireStates int
	// Seed is what random choices come from (1).
	Seed uint64
	// Models are where states come from ("adversarial").
	Models []string
	// Out is the folder for the recording and all results (a temporary one).
	Out string
	// Options are further arguments of `leyden crashtest`.
	Options []string
	// Leyden is the program ($LEYDEN, or "leyden").
	Leyden string
}

// Finding is states that broke in one way.
type Finding struct {
	Verdict string `json:"verdict"`
	Cause   string `json:"cause"`
	Said    string `json:"said"`
	Count   int    `json:"count"`
	First   int    `json:"first"`
	IsFlaky bool   `json:"is_flaky"`
	// Lost is the smallest loss that breaks it, if that was looked for.
	Lost []string `json:"lost"`
}

// Model is what one model came to.
type Model struct {
	Model   string `json:"model"`
	Moments int    `json:"moments"`
	Asked   int    `json:"asked"`
	States  int    `json:"states"`
	// Stop is what ended it: states, budget or exhausted.
	Stop     string         `json:"stop"`
	Repeats  int            `json:"repeats"`
	Verdicts map[string]int `json:"verdicts"`
	Findings []Finding      `json:"findings"`
	Seconds  float64        `json:"seconds"`
}

// Summary is what a crash test came to.
type Summary struct {
	// Verdict is held, broken, check_blind, check_fails or too_few.
	Verdict string `json:"verdict"`
	Flushes int    `json:"flushes"`
	Acks    int    `json:"acks"`
	// Intact is what the check says where nothing is lost.
	Intact struct {
		Verdict string `json:"verdict"`
		Said    string `json:"said"`
	} `json:"intact"`
	Control Model   `json:"control"`
	Models  []Model `json:"models"`
	// Out is the folder with report.html, findings and the recording.
	Out string `json:"-"`
}

// Broken says what broke on lawful drives; nothing if everything held.
func (s *Summary) Broken() []string {
	var said []string
	for _, model := range s.Models {
		if model.Model == "lying" {
			continue
		}
		for i, finding := range model.Findings {
			name := fmt.Sprintf("%s-%d", model.Model, i+1)
			said = append(said, fmt.Sprintf("%s, %d of %d states: %s (%s/findings/%s.json)%s",
				finding.Verdict, finding.Count, model.States, finding.Cause, s.Out, name, listed(finding.Lost)))
		}
	}
	return said
}

// listed is a list with a line for each loss.
func listed(lost []string) string {
	if len(lost) == 0 {
		return ""
	}
	return "\n\t" + strings.Join(lost, "\n\t")
}

// NoVerdict says why the result is none; nothing if it is one.
func (s *Summary) NoVerdict() string {
	switch s.Verdict {
	case "check_blind":
		return "the check passes a drive that ignores all flushes: it does not notice lost data"
	case "check_fails":
		return strings.TrimSpace("the check fails where nothing is lost: the check or the work is broken\n" + s.Intact.Said)
	case "too_few":
		return "fewer states were tried than are required"
	}
	return ""
}

// Run fails t if something broke, or if the result is no verdict. It skips t, with the reason, where the machine lacks
// what crash tests take, unless LEYDEN_REQUIRED is set.
func (c Test) Run(t testing.TB) *Summary {
	t.Helper()
	c = c.withDefaults()
	if problem := c.lacking(); problem != "" {
		if os.Getenv("LEYDEN_REQUIRED") != "" {
			t.Fatal(problem)
		}
		t.Skip(problem)
	}
	if c.Out == "" {
		c.Out = filepath.Join(t.TempDir(), "crash")
	}
	summary, err := c.Explore()
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range summary.Broken() {
		t.Errorf("a power cut breaks it: %s", broken)
	}
	if problem := summary.NoVerdict(); problem != "" {
		t.Error(problem)
	}
	return summary
}

// Explore records the work, cuts its power, and checks what is left. It returns an error if that cannot be done, and
// none for what broke.
func (c Test) Explore() (*Summary, error) {
	c = c.withDefaults()
	if c.Out == "" {
		return nil, errors.New("crashtest: Out names no folder")
	}
	args := append([]string{"--quiet", "crashtest"}, c.target()...)
	args = append(args, "--work", c.Work, "--check", c.Check, "--out", c.Out, "--states", strconv.Itoa(c.States),
		"--seed", strconv.FormatUint(c.Seed, 10), "--model", strings.Join(c.Models, ","), "--json")
	if c.RequireStates > 0 {
		args = append(args, "--require-states", strconv.Itoa(c.RequireStates))
	}
	if c.Setup != "" {
		args = append(args, "--setup", c.Setup)
	}
	if c.CheckServer {
		args = append(args, "--check-server")
	}
	command := exec.Command(c.Leyden, append(args, c.Options...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	// With these there is a result: 1 says that something broke, 6 to 8 that it is no verdict.
	hasResult := func(code int) bool { return code == 1 || 6 <= code && code <= 8 }
	if err != nil && !(errors.As(err, &exit) && hasResult(exit.ExitCode()) && stdout.Len() > 0) {
		return nil, fmt.Errorf("%s: %w\n%s", c.Leyden, err, strings.TrimSpace(stderr.String()))
	}
	summary := &Summary{Out: c.Out}
	if err := json.Unmarshal(stdout.Bytes(), summary); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Leyden, err)
	}
	return summary, nil
}

// target is what loses power: a drive or files.
func (c Test) target() []string {
	if c.Files != "" {
		return []string{"--files=" + c.Files}
	}
	args := []string{c.Drive, "--fs", c.FS, "--size", c.Size}
	for _, setting := range c.Settings {
		args = append(args, "--set", setting)
	}
	return args
}

// lacking is what this machine lacks; nothing if crash tests can be made.
func (c Test) lacking() string {
	doctor := []string{"crashtest", "doctor", "--fs", c.FS}
	if c.Files != "" {
		doctor = []string{"crashtest", "doctor", "--files"}
	}
	command := exec.Command(c.Leyden, doctor...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		return strings.TrimSpace(err.Error() + "\n" + stderr.String())
	}
	return ""
}

func (c Test) withDefaults() Test {
	text := func(field *string, otherwise string) {
		if *field == "" {
			*field = otherwise
		}
	}
	text(&c.Leyden, os.Getenv("LEYDEN"))
	text(&c.Leyden, "leyden")
	text(&c.Drive, "devices/tlc-datacenter")
	text(&c.FS, "ext4")
	text(&c.Size, "64 MiB")
	if c.States == 0 {
		c.States = 500
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	if len(c.Models) == 0 {
		c.Models = []string{"adversarial"}
	}
	return c
}
