package licenses

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

const rule = "--------------------------------------------------------------------------------\n"

// Write writes each text once, below the names of the modules that have it.
func Write(w io.Writer, modules []Module) error {
	var order []string
	owners := map[string][]string{}
	for _, m := range modules {
		for _, f := range append(append([]File{}, m.Licenses...), m.Notices...) {
			text := string(bytes.TrimSpace(bytes.ReplaceAll(f.Text, []byte("\r\n"), []byte("\n"))))
			if owners[text] == nil {
				order = append(order, text)
			}
			owners[text] = append(owners[text], fmt.Sprintf("%s %s: %s", m.Path, m.Version, f.Name))
		}
	}
	var b strings.Builder
	b.WriteString("HealthScope contains the following modules of others, under the licences below their names.\n")
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s%s\n%s\n%s\n", rule, strings.Join(owners[text], "\n"), rule, text)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("cannot write the licences: %w", err)
	}
	return nil
}
