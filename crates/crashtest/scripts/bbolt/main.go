// bbolt under `leyden crashtest`: a setup, a work, and a check that stays.
//
//	store setup
//	store work TRANSACTIONS [nosync]
//	store check                       a line on standard input for each state, a line of answer
//
// Each transaction puts three records and a counter; it is acknowledged when Update has returned.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

var bucket = []byte("b")

func open() (*bbolt.DB, error) {
	path := filepath.Join(os.Getenv("LEYDEN_MOUNT"), "data.bolt")
	return bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func key(number, part int) []byte { return []byte(fmt.Sprintf("%06d.%d", number, part)) }
func value(number int) []byte     { return []byte(fmt.Sprintf("%d %s", number, strings.Repeat("x", 300))) }

func setup() {
	fmt.Println("version bbolt, as go.mod says")
	db, err := open()
	must(err)
	must(db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		if err == nil {
			err = b.Put([]byte("counter"), []byte("0"))
		}
		return err
	}))
	must(db.Close())
}

func work(transactions int, noSync bool) {
	db, err := open()
	must(err)
	db.NoSync = noSync
	acks, err := os.OpenFile(os.Getenv("LEYDEN_ACK"), os.O_WRONLY, 0)
	must(err)
	for number := 1; number <= transactions; number++ {
		must(db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucket)
			for part := 0; part < 3; part++ {
				if err := b.Put(key(number, part), value(number)); err != nil {
					return err
				}
			}
			// Pages are freed and used again.
			if err := b.Delete(key(number-7, 2)); err != nil {
				return err
			}
			return b.Put([]byte("counter"), []byte(strconv.Itoa(number)))
		}))
		_, err := fmt.Fprintf(acks, "ack %d\n", number)
		must(err)
	}
}

func verdict() (said string) {
	// bbolt trusts its file.
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
		return "bbolt: " + err.Error()
	}
	defer db.Close()
	last := 0
	err = db.View(func(tx *bbolt.Tx) error {
		for problem := range tx.Check() {
			return problem
		}
		b := tx.Bucket(bucket)
		last, err = strconv.Atoi(string(b.Get([]byte("counter"))))
		for number := 1; number <= last && err == nil; number++ {
			for part := 0; part < 3; part++ {
				found := b.Get(key(number, part))
				if part == 2 && number+7 <= last {
					continue
				}
				if !bytes.Equal(found, value(number)) {
					return fmt.Errorf("record %s is wrong", key(number, part))
				}
			}
		}
		return err
	})
	if err != nil {
		return "bbolt: " + err.Error()
	}
	if last < promised {
		return fmt.Sprintf("lost %d acknowledged transactions of %d", promised-last, promised)
	}
	return "ok"
}

func main() {
	if len(os.Args) < 2 {
		os.Exit(2)
	}
	switch os.Args[1] {
	case "setup":
		setup()
	case "work":
		transactions, err := strconv.Atoi(os.Args[2])
		must(err)
		work(transactions, len(os.Args) > 3)
	case "check":
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println(verdict())
		}
	}
}
