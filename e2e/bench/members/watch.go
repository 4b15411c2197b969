package members

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// bookmarkInterval is how often a watch is told the version it has reached: about as often as a kube-apiserver does.
	bookmarkInterval = time.Minute
	// watchTime is how long a watch lasts that does not say it.
	watchTime = time.Hour
)

// question is what a request for a collection asks for.
type question struct {
	watch bool
	// namespace and name are those that are asked for; empty for all.
	namespace, name string
	// version is where a watch begins: 0 for what there is, as if it had just been made.
	version uint64
	// fromStart says that a watch begins with what there is, and says when it is through.
	fromStart bool
	bookmarks bool
	// lasts is how long a watch lasts.
	lasts time.Duration
}

// parse reads a question. What it does not know it refuses: a filter that is left out would be a wrong answer.
func parse(namespace string, query url.Values) (question, error) {
	q := question{
		namespace: namespace, watch: truth(query.Get("watch")), fromStart: truth(query.Get("sendInitialEvents")),
		bookmarks: truth(query.Get("allowWatchBookmarks")), lasts: watchTime,
	}
	if selector := query.Get("labelSelector"); selector != "" {
		return q, fmt.Errorf("labelSelector %q is not served", selector)
	}
	if selector := query.Get("fieldSelector"); selector != "" {
		parsed, err := fields.ParseSelector(selector)
		if err != nil {
			return q, fmt.Errorf("fieldSelector %q cannot be read: %w", selector, err)
		}
		name, ok := parsed.RequiresExactMatch("metadata.name")
		if !ok || len(parsed.Requirements()) != 1 {
			return q, fmt.Errorf("fieldSelector %q is not served: want metadata.name", selector)
		}
		q.name = name
	}
	if q.fromStart && (!q.watch || query.Get("resourceVersionMatch") != string(metav1.ResourceVersionMatchNotOlderThan)) {
		return q, fmt.Errorf("sendInitialEvents wants a watch, and resourceVersionMatch %s", metav1.ResourceVersionMatchNotOlderThan)
	}
	for name, into := range map[string]func(uint64){
		"resourceVersion": func(n uint64) { q.version = n },
		"timeoutSeconds":  func(n uint64) { q.lasts = time.Duration(n) * time.Second },
	} {
		if text := query.Get(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				return q, fmt.Errorf("%s %q is no number: %w", name, text, err)
			}
			into(n)
		}
	}
	return q, nil
}

func truth(text string) bool { return text == "true" || text == "1" }

func (q question) passes(name types.NamespacedName) bool {
	return (q.namespace == "" || name.Namespace == q.namespace) && (q.name == "" || name.Name == q.name)
}

// list writes the objects that are asked for.
func (c *collection) list(w http.ResponseWriter, q question) error {
	documents, version := c.snapshot(q.passes)
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprintf(out, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[`, c.kind, c.apiVersion, version)
	for i, d := range documents {
		if i > 0 {
			_ = out.WriteByte(',') // A failure shows when it is flushed.
		}
		_, _ = out.Write(d.head)
		_, _ = out.Write(d.tail)
	}
	_, _ = out.WriteString("]}\n")
	return out.Flush()
}

// stream is a watch that is answered.
type stream struct {
	out  *bufio.Writer
	sent *http.ResponseController
}

// event writes an event; it is sent with the next flush.
func (s stream) event(kind string, d document) {
	fmt.Fprintf(s.out, `{"type":%q,"object":`, kind)
	_, _ = s.out.Write(d.head) // A failure shows when it is flushed.
	_, _ = s.out.Write(d.tail)
	_, _ = s.out.WriteString("}\n")
}

// bookmark says which version the watch has reached.
func (s stream) bookmark(c *collection, version uint64, annotations string) {
	fmt.Fprintf(s.out, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s}}}`+"\n", c.kind, c.apiVersion, version, annotations)
}

func (s stream) flush() error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.sent.Flush()
}

// endOfInitialEvents marks the bookmark after all that there was when the watch began.
const endOfInitialEvents = `,"annotations":{"` + metav1.InitialEventsAnnotationKey + `":"true"}`

// watch writes changes as they happen, until ctx ends or the watch's time is over.
func (c *collection) watch(ctx context.Context, w http.ResponseWriter, q question) error {
	at := q.version
	var begin []document
	if q.fromStart || at == 0 {
		begin, at = c.snapshot(q.passes)
	} else if _, _, _, ok := c.since(at); !ok {
		return fail(w, http.StatusGone, metav1.StatusReasonExpired, tooOld(at))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	s := stream{out: bufio.NewWriterSize(w, 64<<10), sent: http.NewResponseController(w)}
	for _, d := range begin {
		s.event("ADDED", d)
	}
	if q.fromStart {
		s.bookmark(c, at, endOfInitialEvents)
	}
	if err := s.flush(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, q.lasts)
	defer cancel()
	return s.follow(ctx, c, q, at)
}

func tooOld(version uint64) string { return fmt.Sprintf("too old resource version: %d", version) }

// follow writes what happens to a collection after a version, until ctx ends.
func (s stream) follow(ctx context.Context, c *collection, q question, at uint64) error {
	bookmarks := time.NewTicker(bookmarkInterval)
	defer bookmarks.Stop()
	for {
		changes, now, more, ok := c.since(at)
		if !ok { // The reader is too slow.
			status, err := statusOf(http.StatusGone, metav1.StatusReasonExpired, tooOld(at))
			if err != nil {
				return err
			}
			s.event("ERROR", document{head: status})
			return s.flush()
		}
		at = now
		for i := range changes {
			if q.passes(changes[i].name) {
				s.event(changes[i].kind, changes[i].document)
			}
		}
		if err := s.flush(); err != nil {
			return err
		}
		select {
		case <-more:
		case <-bookmarks.C:
			if q.bookmarks {
				s.bookmark(c, at, "")
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
