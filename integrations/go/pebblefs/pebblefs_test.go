package pebblefs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"leyden.dev/go/crashtest"
)

const batches = 60

func open(fs crashtest.FS) (*pebble.DB, error) {
	// Tables are written and compacted within the run.
	return pebble.Open("db", &pebble.Options{FS: New(fs), MemTableSize: 64 << 10, Logger: quiet{}})
}

type quiet struct{}

func (quiet) Infof(string, ...any)              {}
func (quiet) Errorf(string, ...any)             {}
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func key(number, part int) []byte { return []byte(fmt.Sprintf("%06d.%d", number, part)) }
func value(number int) []byte     { return []byte(fmt.Sprintf("%d %s", number, strings.Repeat("x", 900))) }

func setup(fs crashtest.FS) error {
	db, err := open(fs)
	if err != nil {
		return err
	}
	if err := db.Set([]byte("counter"), []byte("0"), pebble.Sync); err != nil {
		return err
	}
	return db.Close()
}

// work commits batches of three records and a counter, each acknowledged when Commit has returned.
func work(fs crashtest.FS, ack func(string)) error {
	db, err := open(fs)
	if err != nil {
		return err
	}
	for number := 1; number <= batches; number++ {
		batch := db.NewBatch()
		for part := 0; part < 3; part++ {
			if err := batch.Set(key(number, part), value(number), nil); err != nil {
				return err
			}
		}
		if err := batch.Set([]byte("counter"), []byte(strconv.Itoa(number)), nil); err != nil {
			return err
		}
		if err := batch.Commit(pebble.Sync); err != nil {
			return err
		}
		ack(strconv.Itoa(number))
	}
	return nil // as a program that is killed: the database is not closed
}

func check(fs crashtest.FS, promises []string) error {
	db, err := open(fs)
	if err != nil {
		return err
	}
	defer db.Close()
	get := func(key []byte) ([]byte, error) {
		found, closer, err := db.Get(key)
		if err != nil {
			return nil, err
		}
		defer closer.Close()
		return bytes.Clone(found), nil
	}
	counter, err := get([]byte("counter"))
	if err != nil {
		return fmt.Errorf("counter: %w", err)
	}
	last, err := strconv.Atoi(string(counter))
	if err != nil {
		return err
	}
	for number := 1; number <= last; number++ {
		for part := 0; part < 3; part++ {
			if found, err := get(key(number, part)); err != nil || !bytes.Equal(found, value(number)) {
				return fmt.Errorf("record %s is wrong: %v", key(number, part), err)
			}
		}
	}
	if _, err := get(key(last+1, 0)); err == nil {
		return fmt.Errorf("batch %d is there in part", last+1)
	}
	if last < len(promises) {
		return fmt.Errorf("lost %d acknowledged batches of %d", len(promises)-last, len(promises))
	}
	return nil
}

func TestPebbleSurvivesPowerCuts(t *testing.T) {
	summary := crashtest.FilesTest{Setup: setup, Work: work, Check: check, States: 300}.Run(t)
	if summary.Acks != batches || summary.Flushes < batches {
		t.Errorf("%d acknowledged, %d syncs", summary.Acks, summary.Flushes)
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
func (n *notes) Error(args ...any) { n.failed = append(n.failed, fmt.Sprint(args...)) }

func TestAMissingSyncOfTheLogIsFound(t *testing.T) {
	hasty := func(fs crashtest.FS, ack func(string)) error {
		isLog := func(name string) bool { return strings.HasSuffix(name, ".log") }
		return work(crashtest.WithoutSync(fs, isLog), ack)
	}
	noted := &notes{TB: t}
	crashtest.FilesTest{Setup: setup, Work: hasty, Check: check, States: 300}.Run(noted)
	said := strings.Join(noted.failed, "\n")
	if !strings.Contains(said, "acknowledged batches") || !strings.Contains(said, ".log") {
		t.Errorf("not found: %q", said)
	}
}
