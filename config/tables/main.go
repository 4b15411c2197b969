// Program tables writes the tables of the documentation whose rows the code knows. It runs in the root of the source tree.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// docs is the folder of the pages.
const docs = "config/docs"

func main() {
	if err := update(); err != nil {
		fmt.Fprintf(os.Stderr, "tables: %v\n", err)
		os.Exit(1)
	}
}

// update writes the tables of all pages.
func update() error {
	for page, tables := range map[string]map[string]table{
		"commands.md": commandTables(),
		"metrics.md":  metricTables(),
	} {
		name := filepath.Join(docs, page)
		before, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		after, err := fill(string(before), tables)
		if err != nil {
			return fmt.Errorf("cannot write the tables of %s: %w", name, err)
		}
		if err := os.WriteFile(name, []byte(after), 0o644); err != nil { //nolint:gosec // It is a file of the source tree, which everybody may read.
			return err
		}
	}
	return nil
}
