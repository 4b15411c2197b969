package healthscope

import (
	"strings"
	"time"
	"unicode"
)

// Clean returns an untrusted text as one line that cannot control a terminal, a log or an editor: it replaces control
// characters (C0, C1), line breaks, and characters that change the direction of text or are invisible by blanks. Texts are
// cleaned once, where they enter the program.
func Clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.ContainsFunc(text, isUnsafe) {
		return text
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || isUnsafe(r) }), " ")
}

// Cut cuts a text to at most limit bytes, at the boundary of a rune.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// Shorten cuts a text as Cut does, and ends it with three dots, which count towards limit. limit must be 3 or more.
func Shorten(text string, limit int) string {
	const more = "..."
	if len(text) <= limit {
		return text
	}
	return Cut(text, limit-len(more)) + more
}

// isUnsafe reports whether Clean replaces a rune: control characters, separators of lines and paragraphs, and the invisible
// characters of Unicode's class Cf, such as U+202E. It keeps U+200C and U+200D, which join letters of scripts and emoji.
func isUnsafe(r rune) bool {
	switch r {
	case '\u2028', '\u2029':
		return true
	case '\u200c', '\u200d':
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// maxYear is the last valid year of a time: it has four digits in every time zone.
const maxYear = 9998

// cleanTime returns an untrusted time; the zero time for a time that other programs cannot write or read.
func cleanTime(t time.Time) time.Time {
	if year := t.UTC().Year(); year < 1 || year > maxYear {
		return time.Time{}
	}
	return t
}

// Clean cleans the untrusted texts and times of a result: its names, reason, message and labels.
func (r *Result) Clean() {
	for _, text := range [...]*string{&r.Group, &r.Kind, &r.Namespace, &r.Name, &r.Version, &r.UID, &r.Message} {
		*text = Clean(*text)
	}
	r.Reason = Reason(Clean(string(r.Reason)))
	r.Since = cleanTime(r.Since)
	if r.Progress != nil {
		r.Progress.At = cleanTime(r.Progress.At)
	}
	if r.Owner != nil {
		owner := Owner{Group: Clean(r.Owner.Group), Kind: Clean(r.Owner.Kind), Name: Clean(r.Owner.Name)}
		if owner != *r.Owner {
			r.Owner = &owner
		}
	}
	r.Labels = cleanLabels(r.Labels)
}

// cleanLabels returns labels that Clean has cleaned. It returns the same map when there is nothing to clean.
func cleanLabels(labels map[string]string) map[string]string {
	for name, value := range labels {
		if strings.ContainsFunc(name, isUnsafe) || strings.ContainsFunc(value, isUnsafe) {
			clean := make(map[string]string, len(labels))
			for name, value := range labels {
				clean[Clean(name)] = Clean(value)
			}
			return clean
		}
	}
	return labels
}
