package crashtest

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The software under test is this test's own program, started again: a shop that keeps its orders in files.
func TestMain(m *testing.M) {
	switch os.Getenv("ORDERS") {
	case "work":
		work(false)
	case "hasty":
		work(true)
	case "check":
		check()
	default:
		os.Exit(m.Run())
	}
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func order(number int) string {
	return filepath.Join(os.Getenv("LEYDEN_MOUNT"), fmt.Sprintf("order%d", number))
}

// work takes twelve orders. It confirms each when it is safe; if it is hasty, before.
func work(hasty bool) {
	confirmed, err := os.OpenFile(os.Getenv("LEYDEN_ACK"), os.O_WRONLY, 0)
	must(err)
	folder, err := os.Open(os.Getenv("LEYDEN_MOUNT"))
	must(err)
	confirm := func(number int) {
		_, err := fmt.Fprintf(confirmed, "ack %d\n", number)
		must(err)
	}
	for number := 1; number <= 12; number++ {
		file, err := os.Create(order(number))
		must(err)
		_, err = fmt.Fprintf(file, "order %d\n", number)
		must(err)
		if hasty {
			confirm(number)
		}
		must(file.Sync())
		must(folder.Sync())
		must(file.Close())
		if !hasty {
			confirm(number)
		}
	}
}

// check looks for every order that was confirmed.
func check() {
	confirmed, err := os.Open(os.Getenv("LEYDEN_ACKS"))
	must(err)
	for lines := bufio.NewScanner(confirmed); lines.Scan(); {
		var number int
		_, err := fmt.Sscan(lines.Text(), &number)
		must(err)
		found, _ := os.ReadFile(order(number))
		if string(found) != fmt.Sprintf("order %d\n", number) {
			fmt.Printf("lost order %d\n", number)
			os.Exit(1)
		}
	}
}

func orders(t *testing.T, manner string) Test {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Test{
		Work:     fmt.Sprintf("ORDERS=%s %s", manner, self),
		Check:    fmt.Sprintf("ORDERS=check %s", self),
		Settings: []string{"device.buffer.region=none"},
		Size:     "16 MiB",
		States:   60,
	}
}

func TestConfirmedOrdersSurvivePowerCuts(t *testing.T) {
	summary := orders(t, "work").Run(t)
	if summary.Acks != 12 || summary.Models[0].States < 20 {
		t.Errorf("%d acknowledged, %d states", summary.Acks, summary.Models[0].States)
	}
}

// notes is a test that may fail without failing the one that it is part of.
type notes struct {
	testing.TB
	failed []string
}

func (n *notes) Errorf(format string, args ...any) {
	n.failed = append(n.failed, fmt.Sprintf(format, args...))
}

func (n *notes) Error(args ...any) {
	n.failed = append(n.failed, fmt.Sprint(args...))
}

func TestOrdersThatAreConfirmedTooEarlyAreFound(t *testing.T) {
	noted := &notes{TB: t}
	orders(t, "hasty").Run(noted)
	if len(noted.failed) == 0 || !strings.Contains(noted.failed[0], "lost order") {
		t.Errorf("not found: %q", noted.failed)
	}
}

func TestACheckThatSeesNothingIsFound(t *testing.T) {
	noted := &notes{TB: t}
	blind := orders(t, "work")
	blind.Check = "true"
	blind.Run(noted)
	if len(noted.failed) != 1 || !strings.Contains(noted.failed[0], "ignores all flushes") {
		t.Errorf("not found: %q", noted.failed)
	}
}

func TestACheckThatAlwaysFailsIsNoFinding(t *testing.T) {
	noted := &notes{TB: t}
	wrong := orders(t, "work")
	wrong.Check = "echo no such table; false"
	summary := wrong.Run(noted)
	if len(noted.failed) != 1 || !strings.Contains(noted.failed[0], "no such table") || len(summary.Models) != 0 {
		t.Errorf("not found: %q", noted.failed)
	}
}

func TestTooFewStatesFail(t *testing.T) {
	noted := &notes{TB: t}
	few := orders(t, "work")
	few.RequireStates = 100_000
	few.Run(noted)
	if len(noted.failed) != 1 || !strings.Contains(noted.failed[0], "fewer states") {
		t.Errorf("not found: %q", noted.failed)
	}
}

func TestWorkThatFailsIsAnError(t *testing.T) {
	failing := orders(t, "work")
	failing.Work, failing.Out = "exit 3", filepath.Join(t.TempDir(), "crash")
	if problem := failing.withDefaults().lacking(); problem != "" {
		t.Skip(problem)
	}
	if _, err := failing.Explore(); err == nil {
		t.Error("it went well")
	}
}
