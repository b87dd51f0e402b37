package crashtest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// FilesTest is a crash test of Go functions at the level of files: without root, a drive or a mount of one.
//
//	func TestOrdersSurvivePowerCuts(t *testing.T) {
//		crashtest.FilesTest{Work: work, Check: check}.Run(t)
//	}
//
// Leyden runs the test's program again for each function, in a folder of its own. A test has one Run; what stands before
// it runs each time.
type FilesTest struct {
	// Setup prepares the folder; all of it survives. It may be nil.
	Setup func(fs FS) error
	// Work is recorded. It calls ack for each promise.
	Work func(fs FS, ack func(promise string)) error
	// Check says whether a state keeps the promises made before the power cut; each state is a new folder.
	Check func(fs FS, promises []string) error
	// Rules say what survives: "xfs" (the default), "ext4", "btrfs" or "posix".
	Rules string
	// States, RequireStates, Seed, Out, Options and Leyden are those of Test.
	States        int
	RequireStates int
	Seed          uint64
	Out           string
	Options       []string
	Leyden        string
}

// Run fails t if a state broke, or if the result is no verdict, as Test.Run does.
func (f FilesTest) Run(t testing.TB) *Summary {
	t.Helper()
	if phase := os.Getenv("LEYDEN_PHASE"); phase != "" {
		f.phase(phase)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := fmt.Sprintf("exec %s -test.run %s -test.timeout 0", quoted(self), quoted(pattern(t.Name())))
	test := Test{
		Files: "xfs", Work: command, Check: command, CheckServer: true, States: f.States,
		RequireStates: f.RequireStates, Seed: f.Seed, Out: f.Out, Options: f.Options, Leyden: f.Leyden,
	}
	if f.Rules != "" {
		test.Files = f.Rules
	}
	if f.Setup != nil {
		test.Setup = command
	}
	return test.Run(t)
}

// phase runs one of the functions, and ends the program.
func (f FilesTest) phase(phase string) {
	fs := Folder(os.Getenv("LEYDEN_MOUNT"))
	var err error
	switch phase {
	case "setup":
		err = f.Setup(fs)
	case "work":
		err = f.work(fs)
	case "check":
		f.checks(fs)
	default:
		err = fmt.Errorf("LEYDEN_PHASE=%s is not known", phase)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (f FilesTest) work(fs FS) error {
	acks, err := os.OpenFile(os.Getenv("LEYDEN_ACK"), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Work(fs, func(promise string) {
		if _, err := fmt.Fprintf(acks, "ack %s\n", promise); err != nil {
			panic(err)
		}
	})
}

// checks answers a line for each state. The answers have standard output for themselves.
func (f FilesTest) checks(fs FS) {
	answers := os.Stdout
	os.Stdout = os.Stderr
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
		answer := "ok"
		if err := f.checked(fs); err != nil {
			answer = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		fmt.Fprintln(answers, answer)
	}
}

func (f FilesTest) checked(fs FS) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	said, err := os.ReadFile(os.Getenv("LEYDEN_ACKS"))
	if err != nil {
		return err
	}
	var promises []string
	for _, line := range bytes.Split(bytes.TrimSuffix(said, []byte("\n")), []byte("\n")) {
		if len(line) > 0 {
			promises = append(promises, string(line))
		}
	}
	return f.Check(fs, promises)
}

// pattern matches one test, or a subtest, and no other.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// quoted is a word of the shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
