// Program licenses prints the licences of all modules that are linked into healthscope. It runs in the root of the source tree.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/healthscope/healthscope/config/licenses"
)

func main() {
	modules, err := licenses.Of(context.Background(), ".", ".", false)
	if err == nil {
		err = licenses.Write(os.Stdout, modules)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "licenses: %v\n", err)
		os.Exit(1)
	}
}
