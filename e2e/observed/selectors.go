package observed

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Selector chooses series in a query.
type Selector struct {
	// Metric is the name of the metric.
	Metric string
	// Text is the selector as it is written: the name, and the matchers in braces.
	Text string
}

// token matches what PromQL consists of, the longest first: comments, strings, times, names, numbers and everything else.
// See "Querying basics" of the Prometheus documentation.
var token = regexp.MustCompile(`#[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|` + "`[^`]*`" + `|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9a-zA-Z.]*|\s+|[=!]~|[=!<>]=|.`)

var name = regexp.MustCompile(`^[a-zA-Z_:]`)

// keywords are names that are neither metrics nor functions. Those in grouping are followed by a list of labels.
var (
	keywords = []string{"and", "or", "unless", "bool", "offset", "atan2", "inf", "nan"}
	grouping = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
)

// closing are the brackets that end what others begin.
var closing = map[string]string{"(": ")", "{": "}", "[": "]"}

// Selectors returns the selectors of a PromQL query, in their order. A query whose brackets or strings do not end is an error; otherwise it is not checked.
func Selectors(query string) ([]Selector, error) {
	words := slices.DeleteFunc(token.FindAllString(query, -1), func(w string) bool {
		return strings.TrimSpace(w) == "" || strings.HasPrefix(w, "#")
	})
	if err := balanced(words); err != nil {
		return nil, fmt.Errorf("cannot read the query %q: %w", query, err)
	}
	var found []Selector
	for i := 0; i < len(words); i++ {
		word, next := words[i], ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		switch {
		case slices.Contains(grouping, strings.ToLower(word)):
			if next == "(" {
				i = end(words, i+1)
			}
		case word == "[":
			i = end(words, i)
		case !name.MatchString(word), slices.Contains(keywords, strings.ToLower(word)), next == "(", aggregates(words, i):
		case next == "{":
			last := end(words, i+1)
			found = append(found, Selector{word, strings.Join(words[i:last+1], "")})
			i = last
		default:
			found = append(found, Selector{word, word})
		}
	}
	return found, nil
}

// aggregates says whether a word is an operator whose list of labels comes before what it aggregates.
func aggregates(words []string, i int) bool {
	return i+2 < len(words) && (words[i+1] == "by" || words[i+1] == "without") && words[i+2] == "("
}

// end returns the index of the bracket that closes the one at an index.
func end(words []string, open int) int {
	depth := 0
	for i := open; i < len(words); i++ {
		switch words[i] {
		case words[open]:
			depth++
		case closing[words[open]]:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(words) - 1
}

func balanced(words []string) error {
	var open []string
	for _, w := range words {
		switch {
		case closing[w] != "":
			open = append(open, closing[w])
		case w == ")" || w == "}" || w == "]":
			if len(open) == 0 || open[len(open)-1] != w {
				return fmt.Errorf("there is a %q too much", w)
			}
			open = open[:len(open)-1]
		case w == `"` || w == "'" || w == "`":
			return errors.New("a string does not end")
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("a %q is missing", open[len(open)-1])
	}
	return nil
}
