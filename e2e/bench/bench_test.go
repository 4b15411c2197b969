package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestRows measures every row at its smallest size. The rows check their results themselves. This test does not judge the
// figures.
func TestRows(t *testing.T) {
	var table bytes.Buffer
	if err := run(t.Context(), []string{"--scale", "0.01"}, &table, t.Output()); err != nil {
		t.Fatal(err)
	}
	for _, id := range rowIDs() {
		if !strings.Contains(table.String(), "\n"+id+" ") {
			t.Errorf("the table has no row %q:\n%s", id, &table)
		}
	}
}
