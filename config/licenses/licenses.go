// Package licenses finds the licences of the modules in a program, as the authors publish them. Releases contain their texts. A
// test in config/verify defines which licences are allowed.
package licenses

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// systems are the operating systems for which releases are built. The linked packages differ.
var systems = []string{"linux", "darwin"}

var (
	licenseName = regexp.MustCompile(`(?i)^((mit-|un)?licen[cs]es?|copying|copyright)([-._].*)?$`)
	noticeName  = regexp.MustCompile(`(?i)^(notice|patents)([-._].*)?$`)
)

// File is a file of a module.
type File struct {
	// Name is its path in the module, with slashes.
	Name string
	Text []byte
}

// Module is a module, or Go's standard library.
type Module struct {
	// Path is the module's path, or "std".
	Path string
	// Version is the module's version, or that of Go.
	Version string
	// Licenses are the files with licences in the folders of the used packages and in the folders above these, by name.
	Licenses []File
	// Notices are other files that must be distributed with the program, such as NOTICE of the Apache License, section 4 (d).
	Notices []File
}

// listed is the output of `go list -json` for a package.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Version string }
	}
}

// Of returns the modules that packages need, with or without their tests, by path. For a program, these are the modules that are
// linked into it. dir is the root of the source tree.
func Of(ctx context.Context, dir, pkgs string, tests bool) ([]Module, error) {
	c := collection{modules: map[string]*Module{}, seen: map[string]bool{}}
	for _, system := range systems {
		cmd := exec.CommandContext(ctx, "go", "list", "-buildvcs=false", "-json=Dir,Standard,Module", "-deps", "-test="+strconv.FormatBool(tests), "--", pkgs) //nolint:gosec // It lists packages, and runs nothing of them.
		var out, problems bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &problems
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH=arm64")
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("cannot list the packages for %q: %w\n%s", system, err, problems.String())
		}
		for dec := json.NewDecoder(&out); ; {
			var p listed
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("cannot read the list of packages: %w", err)
			}
			if err := c.add(p); err != nil {
				return nil, err
			}
		}
	}
	if err := c.addGo(ctx, dir); err != nil {
		return nil, err
	}
	var all []Module
	for _, m := range c.modules {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

// collection holds the modules that are found, and the folders that have been read.
type collection struct {
	modules map[string]*Module
	seen    map[string]bool
}

// add adds the module of a package, and the licences in the folders from that of the package up to that of the module.
func (c *collection) add(p listed) error {
	if p.Standard || p.Module == nil || p.Module.Main || p.Module.Replace != nil && p.Module.Replace.Version == "" { // A module that a folder replaces belongs to the project.
		return nil
	}
	m := c.modules[p.Module.Path]
	if m == nil {
		m = &Module{Path: p.Module.Path, Version: p.Module.Version}
		if p.Module.Replace != nil {
			m.Version = p.Module.Replace.Version
		}
		c.modules[m.Path] = m
	}
	for folder := p.Dir; ; folder = filepath.Dir(folder) {
		if err := c.look(m, p.Module.Dir, folder); err != nil {
			return err
		}
		if folder == p.Module.Dir || !strings.HasPrefix(folder, p.Module.Dir) {
			return nil
		}
	}
}

// addGo adds Go's standard library, which is part of every program.
func (c *collection) addGo(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("cannot find out where Go is: %w", err)
	}
	goroot, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	m := &Module{Path: "std", Version: version}
	c.modules[m.Path] = m
	return c.look(m, goroot, goroot)
}

// look adds the licences and notices in a folder of a module.
func (c *collection) look(m *Module, root, folder string) error {
	if c.seen[folder] {
		return nil
	}
	c.seen[folder] = true
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("cannot look for the licence of module %q: %w", m.Path, err)
	}
	for _, entry := range entries {
		name := entry.Name()
		list := &m.Licenses
		switch {
		case entry.IsDir() || filepath.Ext(name) == ".go":
			continue
		case noticeName.MatchString(name):
			list = &m.Notices
		case !licenseName.MatchString(name):
			continue
		}
		path := filepath.Join(folder, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("cannot read a licence of module %q: %w", m.Path, err)
		}
		if relative, err := filepath.Rel(root, path); err == nil {
			name = filepath.ToSlash(relative)
		}
		*list = append(*list, File{Name: name, Text: text})
		slices.SortFunc(*list, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	}
	return nil
}
