package controlplane

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestOptionsComplete(t *testing.T) {
	cases := map[string]struct {
		options Options
		want    Options
		wantErr string
	}{
		"the zero value is a bare control plane": {
			want: Options{Name: "controlplane", Log: io.Discard},
		},
		"controllers bring nodes": {
			options: Options{Name: "hub", Controllers: true},
			want:    Options{Name: "hub", Log: io.Discard, Controllers: true, Nodes: DefaultNodes},
		},
		"a number of nodes stays": {
			options: Options{Name: "e-1", Controllers: true, Nodes: 7},
			want:    Options{Name: "e-1", Log: io.Discard, Controllers: true, Nodes: 7},
		},
		"a name is no path":          {options: Options{Name: "../hub"}, wantErr: `invalid Name "../hub"`},
		"a name has an end":          {options: Options{Name: strings.Repeat("a", 41)}, wantErr: "invalid Name"},
		"nodes need controllers":     {options: Options{Nodes: 1}, wantErr: "invalid Nodes 1: nodes need Controllers"},
		"no negative nodes":          {options: Options{Nodes: -1, Controllers: true}, wantErr: "invalid Nodes -1"},
		"kept data must be findable": {options: Options{KeepData: true}, wantErr: "KeepData needs Dir"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.options.complete()
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("want an error with %q, got %v", tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("complete: %v", err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(io.Discard)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
