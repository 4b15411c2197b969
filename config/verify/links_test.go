package verify

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// source is the URL of the repository, for pages that are read outside of it.
const source = "https://github.com/healthscope/healthscope/blob/main/"

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// machinePath matches paths that exist on one machine only.
	machinePath = regexp.MustCompile(`(^|[^\w.~-])/(work|root|home|Users|tmp)\b`)
	notInSlug   = regexp.MustCompile(`[^\w\- ]`)
)

// allPages returns every Markdown file of the project, by its path from the root.
func allPages(t *testing.T) []page {
	t.Helper()
	var pages []page
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		pages = append(pages, page{name: filepath.ToSlash(name), text: string(data)})
		return err
	})
	if err != nil || len(pages) < 3 {
		t.Fatalf("cannot find the Markdown files of the project: %d found, %v", len(pages), err)
	}
	return pages
}

// links returns the targets of a page's links. Links in code do not count.
func (p page) links() []string {
	var targets []string
	for _, l := range p.lines() {
		if l.fenced {
			continue
		}
		for _, match := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(l.text, "code"), -1) {
			targets = append(targets, match[1])
		}
	}
	return targets
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func (p page) anchors() map[string]bool {
	anchors := map[string]bool{}
	for _, l := range p.lines() {
		if match := heading.FindStringSubmatch(l.text); match != nil && !l.fenced {
			slug := notInSlug.ReplaceAllString(strings.ToLower(match[2]), "")
			anchors[strings.ReplaceAll(slug, " ", "-")] = true
		}
	}
	return anchors
}

// place returns the target of a link within the project: the path of a file from the root, and an anchor. ok is false if the
// link leads out of the project.
func (p page) place(target string) (name, anchor string, ok bool) {
	path, absolute := strings.CutPrefix(target, source)
	path, anchor, _ = strings.Cut(path, "#")
	switch {
	case absolute:
		return path, anchor, true
	case strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:"):
		return "", "", false
	case path == "":
		return p.name, anchor, true
	}
	return filepath.ToSlash(filepath.Join(filepath.Dir(p.name), path)), anchor, true
}

func TestLinksLeadSomewhere(t *testing.T) {
	pages := map[string]page{}
	for _, p := range allPages(t) {
		pages[p.name] = p
	}
	for _, p := range pages {
		for _, target := range p.links() {
			name, anchor, ok := p.place(target)
			if !ok {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s: the link %q leads nowhere: there is no %s", p.name, target, name)
				continue
			}
			if linked, ok := pages[name]; ok && anchor != "" && !linked.anchors()[anchor] {
				t.Errorf("%s: the link %q leads nowhere: %s has no such heading", p.name, target, name)
			}
		}
	}
}

// TestThePageOfTheChartCanBeReadAnywhere asserts that this page has no relative links to other files. It is packaged with the
// chart, without the files around it.
func TestThePageOfTheChartCanBeReadAnywhere(t *testing.T) {
	for _, p := range allPages(t) {
		for _, target := range p.links() {
			if strings.HasPrefix(p.name, "charts/") && !strings.HasPrefix(target, "#") && !strings.Contains(target, "://") {
				t.Errorf("%s: begin the link %q with %s", p.name, target, source)
			}
		}
	}
}

func TestPagesNameNoMachine(t *testing.T) {
	for _, p := range allPages(t) {
		for n, l := range p.lines() {
			if machinePath.MatchString(l.text) {
				t.Errorf("%s:%d names a path of a machine: %s", p.name, n+1, l.text)
			}
		}
	}
}

func TestTheIndexHasEveryPage(t *testing.T) {
	index := readPage(t, "README.md")
	var listed []string
	for _, r := range index.rows(t, "page") {
		listed = append(listed, page{text: r["page"]}.links()...)
	}
	var want []string
	for _, p := range allPages(t) {
		// Of the pages for contributors, the index lists only the first one, which links to the others.
		name, ok := strings.CutPrefix(p.name, "config/docs/")
		if ok && name != "README.md" && (!strings.HasPrefix(name, "design/") || name == "design/decisions.md") {
			want = append(want, name)
		}
	}
	index.documents(t, "page", want, listed)
}

func TestEveryPageBeginsWithItsTitle(t *testing.T) {
	for _, p := range allPages(t) {
		if strings.HasPrefix(p.name, "config/docs/") && !strings.HasPrefix(p.text, "# ") {
			t.Errorf("%s: begin with a heading of the first level", p.name)
		}
	}
}
