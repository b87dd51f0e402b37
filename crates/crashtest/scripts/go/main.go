// A store in Go under `leyden crashtest`: a setup, a work, and a check that stays. store.go has the store.
//
//	store setup
//	store work BATCHES [nosync]
//	store check                   a line on standard input for each state, a line of answer
//
// Each batch puts three records and a counter; it is acknowledged when put has returned.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// store is an open store, in the folder that is tested.
type store interface {
	// put makes one batch of it: these records, and one less.
	put(records map[string][]byte, gone string, isSynced bool) error
	// get returns nothing for a record that is not there.
	get(key string) ([]byte, error)
	// verify is the store's own check, if it has one.
	verify() error
	close() error
}

func path(name string) string { return filepath.Join(os.Getenv("LEYDEN_MOUNT"), name) }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func key(number, part int) string { return fmt.Sprintf("%06d.%d", number, part) }
func value(number int) []byte     { return []byte(fmt.Sprintf("%d %s", number, strings.Repeat("x", 300))) }

func setup() {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			fmt.Println("version", module, dependency.Version)
		}
	}
	db, err := open()
	must(err)
	must(db.put(map[string][]byte{"counter": []byte("0")}, "none", true))
	must(db.close())
}

func work(batches int, isSynced bool) {
	db, err := open()
	must(err)
	acks, err := os.OpenFile(os.Getenv("LEYDEN_ACK"), os.O_WRONLY, 0)
	must(err)
	for number := 1; number <= batches; number++ {
		records := map[string][]byte{"counter": []byte(strconv.Itoa(number))}
		for part := 0; part < 3; part++ {
			records[key(number, part)] = value(number)
		}
		must(db.put(records, key(number-7, 2), isSynced))
		_, err := fmt.Fprintf(acks, "ack %d\n", number)
		must(err)
	}
	if !isSynced {
		must(db.close()) // some stores keep unsynced batches in the process
	}
	os.Exit(0) // a synced store is not closed, as if the program were killed
}

func verdict() (said string) {
	// Some stores trust their files.
	defer func() {
		if problem := recover(); problem != nil {
			said = fmt.Sprintf("panic: %v", problem)
		}
	}()
	acks, err := os.ReadFile(os.Getenv("LEYDEN_ACKS"))
	if err != nil {
		return err.Error()
	}
	promised := bytes.Count(acks, []byte("\n"))
	db, err := open()
	if err != nil {
		return "does not open: " + err.Error()
	}
	defer db.close()
	last, err := whole(db)
	if err != nil {
		return err.Error()
	}
	if last < promised {
		return fmt.Sprintf("lost %d acknowledged batches of %d", promised-last, promised)
	}
	return "ok"
}

// whole is the number of the last batch, if each up to it is there as it was put.
func whole(db store) (int, error) {
	if err := db.verify(); err != nil {
		return 0, err
	}
	counter, err := db.get("counter")
	if err != nil {
		return 0, err
	}
	last, err := strconv.Atoi(string(counter))
	if err != nil {
		return 0, fmt.Errorf("the counter is %q", counter)
	}
	for number := 1; number <= last+1; number++ {
		for part := 0; part < 3; part++ {
			found, err := db.get(key(number, part))
			if err != nil {
				return 0, err
			}
			wanted := value(number)
			if number > last || part == 2 && number+7 <= last {
				wanted = nil
			}
			if !bytes.Equal(found, wanted) {
				return 0, fmt.Errorf("record %s is wrong", key(number, part))
			}
		}
	}
	return last, nil
}

func main() {
	if len(os.Args) < 2 {
		os.Exit(2)
	}
	switch os.Args[1] {
	case "setup":
		setup()
	case "work":
		batches, err := strconv.Atoi(os.Args[2])
		must(err)
		work(batches, len(os.Args) < 4)
	case "check":
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(strings.ReplaceAll(verdict(), "\n", "; "))
		}
	}
}
