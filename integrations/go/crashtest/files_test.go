package crashtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// write makes a file with this text, and syncs it.
func write(fs FS, name, text string) error {
	file, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	return errors.Join(err, file.Sync(), file.Close())
}

func read(fs FS, name string) (string, error) {
	file, err := fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(file)
	return string(text), errors.Join(err, file.Close())
}

func syncFolder(fs FS) error {
	folder, err := fs.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// replaceValues renames each value over the last one.
func replaceValues(fs FS, ack func(string)) error {
	for number := 1; number <= 8; number++ {
		err := write(fs, "value.new", fmt.Sprint(number))
		err = errors.Join(err, fs.Rename("value.new", "value"), syncFolder(fs))
		if err != nil {
			return err
		}
		ack(fmt.Sprint(number))
	}
	return nil
}

func checkValue(fs FS, promises []string) error {
	promised, found := 0, 0
	if len(promises) > 0 {
		fmt.Sscan(promises[len(promises)-1], &promised)
	}
	text, err := read(fs, "value")
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if _, bad := fmt.Sscan(text, &found); err == nil && bad != nil {
		return fmt.Errorf("damaged: %q", text)
	}
	if found < promised {
		return fmt.Errorf("lost %d, found %d", promised, found)
	}
	return nil
}

func TestReplacedValuesSurvivePowerCuts(t *testing.T) {
	for _, rules := range []string{"xfs", "ext4", "btrfs", "posix"} {
		t.Run(rules, func(t *testing.T) {
			summary := FilesTest{Work: replaceValues, Check: checkValue, Rules: rules, States: 300}.Run(t)
			if summary.Acks != 8 || summary.Flushes != 16 {
				t.Errorf("%d acknowledged, %d syncs", summary.Acks, summary.Flushes)
			}
		})
	}
}

func TestAMissingSyncIsFoundAndNamed(t *testing.T) {
	for missed, lost := range map[string]string{".": "rename of value.new and value", "value.new": "page 0"} {
		t.Run(missed, func(t *testing.T) {
			work := func(fs FS, ack func(string)) error {
				return replaceValues(WithoutSync(fs, func(name string) bool { return name == missed }), ack)
			}
			noted := &notes{TB: t}
			FilesTest{Work: work, Check: checkValue, States: 300}.Run(noted)
			if said := strings.Join(noted.failed, "\n"); !strings.Contains(said, lost) {
				t.Errorf("not found: %q", said)
			}
		})
	}
}

func TestAPanicOfTheCheckIsAFinding(t *testing.T) {
	check := func(fs FS, promises []string) error {
		if err := checkValue(fs, promises); err != nil {
			panic("the value is gone")
		}
		return nil
	}
	work := func(fs FS, ack func(string)) error {
		return replaceValues(WithoutSync(fs, func(string) bool { return true }), ack)
	}
	noted := &notes{TB: t}
	FilesTest{Work: work, Check: check, States: 100}.Run(noted)
	if said := strings.Join(noted.failed, "\n"); !strings.Contains(said, "panic: the value is gone") {
		t.Errorf("not found: %q", said)
	}
}

func TestWhatSetupMadeSurvives(t *testing.T) {
	setup := func(fs FS) error {
		file, err := fs.OpenFile("made", os.O_RDWR|os.O_CREATE, 0o644)
		return errors.Join(err, file.Close())
	}
	check := func(fs FS, promises []string) error {
		if _, err := fs.Stat("made"); err != nil {
			return err
		}
		return checkValue(fs, promises)
	}
	FilesTest{Setup: setup, Work: replaceValues, Check: check, States: 100}.Run(t)
}
