package support

import (
	"regexp"
	"slices"
	"strings"
)

// notShown stands for what is left out.
const notShown = "(not shown)"

// What secrets look like in text.
var (
	privateKeys = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// userInfo is the user and password in a URL, and all that may belong to them.
	userInfo = regexp.MustCompile(`://[^\s"'<>]*@`)
	// jsonWebToken is a token such as those of ServiceAccounts (RFC 7519).
	jsonWebToken = regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}(\.[\w-]*)?`)
	bearer       = regexp.MustCompile(`(?i)\b((?:bearer|basic) +)[\w.~+/=-]{12,}`)
	// setting is a name that speaks of a secret, and its value.
	setting = regexp.MustCompile(`(?i)([\w.-]*(?:passwo?r?d|secret|token|credential|api[_-]?key|key-data)[\w.-]*)(\\?["']?[ \t]*[:=][ \t]*)(\\?"[^"]*(?:"|$)|'[^']*(?:'|$)|[^\s"',;}]+)`)
	// harmless ends the names of what only says where a secret is, or how long it is good for.
	harmless = regexp.MustCompile(`(?i)(file|name|namespace|path|ref|expires|lifetime|seconds|kind)$`)
)

// hints are parts of what the patterns find, in lower case. Few lines have one, and patterns take their time.
var hints = []string{"://", "eyj", "bearer ", "basic ", "passw", "secret", "token", "credential", "api", "key-data"}

// scrub takes out of a text what looks like a secret. It would rather take too much.
func scrub(text string) string {
	if strings.Contains(text, "PRIVATE KEY-----") {
		text = privateKeys.ReplaceAllString(text, notShown)
	}
	var clean strings.Builder
	clean.Grow(len(text))
	for line := range strings.Lines(text) {
		low := strings.ToLower(line)
		if slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(low, hint) }) {
			line = scrubLine(line)
		}
		clean.WriteString(line)
	}
	return clean.String()
}

func scrubLine(line string) string {
	line = userInfo.ReplaceAllString(line, "://"+notShown+"@")
	line = jsonWebToken.ReplaceAllString(line, notShown)
	line = bearer.ReplaceAllString(line, "${1}"+notShown)
	return setting.ReplaceAllStringFunc(line, func(match string) string {
		parts := setting.FindStringSubmatch(match)
		name, value := parts[1], strings.Trim(parts[3], `\"'`)
		if harmless.MatchString(name) || slices.Contains([]string{"", "true", "false", "{", "|"}, value) {
			return match
		}
		return name + parts[2] + notShown
	})
}
