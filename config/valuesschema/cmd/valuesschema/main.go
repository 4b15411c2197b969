// Program valuesschema writes the schema of the configuration file into the chart's values.schema.json. It runs in the root of the source tree.
package main

import (
	"fmt"
	"os"

	"github.com/healthscope/healthscope/config/valuesschema"
)

const file = "charts/healthscope/values.schema.json"

func main() {
	if err := update(); err != nil {
		fmt.Fprintf(os.Stderr, "valuesschema: %v\n", err)
		os.Exit(1)
	}
}

func update() error {
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	after, err := valuesschema.Update(".", before)
	if err != nil {
		return err
	}
	return os.WriteFile(file, after, 0o644) //nolint:gosec // It is a file of the source tree, which everybody may read.
}
