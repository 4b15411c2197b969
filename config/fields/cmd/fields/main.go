// Program fields writes the tables of fields into the pages of config/docs. It runs in the root of the source tree.
package main

import (
	"fmt"
	"os"

	"github.com/healthscope/healthscope/config/fields"
)

func main() {
	if err := fields.Update("."); err != nil {
		fmt.Fprintf(os.Stderr, "fields: %v\n", err)
		os.Exit(1)
	}
}
