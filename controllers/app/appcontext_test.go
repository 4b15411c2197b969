package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
)

func TestOpenAppContextReadsCredentials(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	user, password, empty := file("user", "emco\n"), file("password", "s3cr3t"), file("empty", "\n")
	tests := map[string]struct{ user, password, problem string }{
		"of both":            {user, password, ""},
		"of nobody":          {"", "", ""},
		"an empty file":      {user, empty, "is empty"},
		"a file not there":   {filepath.Join(dir, "absent"), password, "cannot read a credential of appContext"},
		"a user and no more": {user, "", "must both be set"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			store, err := OpenAppContext(&configv1alpha1.AppContext{Endpoints: []string{"http://127.0.0.1:1"}, UsernameFile: tt.user, PasswordFile: tt.password})
			if tt.problem == "" && err != nil || tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) {
				t.Errorf("error %v, want %q", err, tt.problem)
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error tells the password: %v", err)
			}
			if store != nil {
				if err := store.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestChangedCredentialsStopTheProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch, err := (&Options{stop: cancel}).restartOnChange(logr.Discard(), "", path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- watch(ctx) }()
	if err := os.WriteFile(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the program does not end")
	}
}
