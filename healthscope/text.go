package healthscope

import (
	"strings"
	"time"
	"unicode"
)

// Clean returns a foreign text as one line that cannot steer a terminal, a log or an editor: without control characters (C0,
// C1), breaks of lines, and characters that turn the direction of text or that are invisible. A blank stands in their place.
// Texts are cleaned once, where they come in.
func Clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.ContainsFunc(text, unsafe) {
		return text
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || unsafe(r) }), " ")
}

// Cut cuts a text to at most limit bytes, at the boundary of a rune.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// Shorten cuts a text as Cut does. Three dots, which count, stand for what is cut: limit must be 3 or more.
func Shorten(text string, limit int) string {
	const more = "..."
	if len(text) <= limit {
		return text
	}
	return Cut(text, limit-len(more)) + more
}

// unsafe reports whether a rune does not belong into a line: control characters, separators of lines and paragraphs, and the
// invisible ones of Unicode's class Cf, such as U+202E. Those that join letters of scripts and emoji, U+200C and U+200D, do.
func unsafe(r rune) bool {
	switch r {
	case '\u2028', '\u2029':
		return true
	case '\u200c', '\u200d':
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// maxYear is the last year of a time that is taken at its word: all time zones write it with four digits.
const maxYear = 9998

// CleanTime returns a foreign time, and the zero time for one that other programs could not write or read.
func CleanTime(t time.Time) time.Time {
	if year := t.UTC().Year(); year < 1 || year > maxYear {
		return time.Time{}
	}
	return t
}

// Clean cleans the texts and times of a result that come from others: its names, reason and message.
func (r *Result) Clean() {
	for _, text := range [...]*string{&r.Group, &r.Kind, &r.Namespace, &r.Name, &r.Version, &r.UID, &r.Message} {
		*text = Clean(*text)
	}
	r.Reason = Reason(Clean(string(r.Reason)))
	r.Since = CleanTime(r.Since)
	if r.Progress != nil {
		r.Progress.At = CleanTime(r.Progress.At)
	}
	if r.Owner != nil {
		owner := Owner{Group: Clean(r.Owner.Group), Kind: Clean(r.Owner.Kind), Name: Clean(r.Owner.Name)}
		if owner != *r.Owner {
			r.Owner = &owner
		}
	}
	r.Labels = cleanLabels(r.Labels)
}

// cleanLabels returns labels without what could steer anything. It returns the same map when there is none.
func cleanLabels(labels map[string]string) map[string]string {
	for name, value := range labels {
		if strings.ContainsFunc(name, unsafe) || strings.ContainsFunc(value, unsafe) {
			clean := make(map[string]string, len(labels))
			for name, value := range labels {
				clean[Clean(name)] = Clean(value)
			}
			return clean
		}
	}
	return labels
}
