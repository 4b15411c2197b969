package api

import (
	"mime"
	"strconv"
	"strings"
)

// Media types that routes offer. Errors are always typeProblem.
const (
	typeJSON    = "application/json"
	typeText    = "text/plain"
	typeStream  = "text/event-stream"
	typeProblem = "application/problem+json"
)

// mediaRange is one element of an Accept header.
type mediaRange struct {
	// name is type/subtype in lower case; either part may be a star.
	name string
	// params is the number of parameters besides the weight.
	params int
	// quality is the weight, 0 to 1.
	quality float64
}

// negotiate chooses the media type of an answer (RFC 9110 section 12.5.1) among
// offers, which are sorted by our own preference. Without an Accept header
// everything is accepted. It returns false when the caller accepts no offer.
// Elements that are not well-formed are ignored.
func negotiate(accept string, offers []string) (string, bool) {
	elements := splitElements(accept)
	if len(elements) == 0 {
		return offers[0], true
	}
	var ranges []mediaRange
	for _, element := range elements {
		if r, ok := parseRange(element); ok {
			ranges = append(ranges, r)
		}
	}
	best, bestQuality := "", 0.0
	for _, offer := range offers {
		if q := quality(ranges, offer); q > bestQuality {
			best, bestQuality = offer, q
		}
	}
	return best, bestQuality > 0
}

// splitElements splits a list at the commas that are not in a quoted string, and drops empty elements.
func splitElements(list string) []string {
	var elements []string
	quoted, escaped, start := false, false, 0
	add := func(element string) {
		if element = strings.TrimSpace(element); element != "" {
			elements = append(elements, element)
		}
	}
	for i := range len(list) {
		switch c := list[i]; {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			add(list[start:i])
			start = i + 1
		}
	}
	add(list[start:])
	return elements
}

// parseRange reads one element of an Accept header. A parameter other than the
// weight makes it a range that we do not serve, except for the charset we use.
func parseRange(element string) (mediaRange, bool) {
	name, params, err := mime.ParseMediaType(element)
	if err != nil {
		return mediaRange{}, false
	}
	if name == "*" { // Sent by Java's HttpURLConnection.
		name = "*/*"
	}
	r := mediaRange{name: name, quality: 1}
	for key, value := range params {
		switch {
		case key == "q":
			q, ok := parseQuality(value)
			if !ok {
				return mediaRange{}, false
			}
			r.quality = q
		case key == "charset" && strings.EqualFold(value, "utf-8"):
			r.params++
		default:
			return mediaRange{}, false
		}
	}
	return r, true
}

// parseQuality reads a weight. It is more generous than the grammar in what callers are known to send: ".2", or more than three decimals.
func parseQuality(text string) (float64, bool) {
	if strings.Trim(text, "0123456789.") != "" {
		return 0, false // ParseFloat knows more notations than HTTP does.
	}
	q, err := strconv.ParseFloat(text, 64)
	return q, err == nil && q <= 1
}

// quality returns the weight of the most specific range that matches an offer, 0 when there is none.
func quality(ranges []mediaRange, offer string) float64 {
	major, _, _ := strings.Cut(offer, "/")
	specificity, q := -1, 0.0
	for _, r := range ranges {
		s := r.params
		switch r.name {
		case offer:
			s += 200
		case major + "/*":
			s += 100
		case "*/*":
		default:
			continue
		}
		if s > specificity {
			specificity, q = s, r.quality
		} else if s == specificity {
			q = max(q, r.quality)
		}
	}
	return q
}
