package support

import (
	"regexp"
	"slices"
	"strings"
)

// redacted replaces a secret.
const redacted = "(not shown)"

// Patterns of secrets in text.
var (
	privateKeys = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// userInfo matches the user and password in a URL, up to the last @: passwords may contain any character.
	userInfo = regexp.MustCompile(`://[^\s"'<>]*@`)
	// jsonWebToken matches a JSON Web Token (RFC 7519), such as that of a ServiceAccount.
	jsonWebToken = regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}(\.[\w-]*)?`)
	bearer       = regexp.MustCompile(`(?i)\b((?:bearer|basic) +)[\w.~+/=-]{12,}`)
	// secretSetting matches a name that suggests a secret, and its value.
	secretSetting = regexp.MustCompile(`(?i)([\w.-]*(?:passwo?r?d|secret|token|credential|api[_-]?key|key-data)[\w.-]*)(\\?["']?[ \t]*[:=][ \t]*)(\\?"[^"]*(?:"|$)|'[^']*(?:'|$)|[^\s"',;}]+)`)
	// nonSecretName matches the end of names whose values are no secrets: they say where a secret is, or how long it is valid.
	nonSecretName = regexp.MustCompile(`(?i)(file|name|namespace|path|ref|expires|lifetime|seconds|kind)$`)
)

// hints are lower-case substrings, one of which is in every match of the patterns. Matching is slow, and few lines contain a hint.
var hints = []string{"://", "eyj", "bearer ", "basic ", "passw", "secret", "token", "credential", "api", "key-data"}

// redactText replaces what looks like a secret in a text. When in doubt, it redacts.
func redactText(text string) string {
	if strings.Contains(text, "PRIVATE KEY-----") {
		text = privateKeys.ReplaceAllString(text, redacted)
	}
	var redactedText strings.Builder
	redactedText.Grow(len(text))
	for line := range strings.Lines(text) {
		lower := strings.ToLower(line)
		if slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(lower, hint) }) {
			line = redactLine(line)
		}
		redactedText.WriteString(line)
	}
	return redactedText.String()
}

func redactLine(line string) string {
	line = userInfo.ReplaceAllString(line, "://"+redacted+"@")
	line = jsonWebToken.ReplaceAllString(line, redacted)
	line = bearer.ReplaceAllString(line, "${1}"+redacted)
	return secretSetting.ReplaceAllStringFunc(line, func(match string) string {
		parts := secretSetting.FindStringSubmatch(match)
		name, value := parts[1], strings.Trim(parts[3], `\"'`)
		if nonSecretName.MatchString(name) || slices.Contains([]string{"", "true", "false", "{", "|"}, value) {
			return match
		}
		return name + parts[2] + redacted
	})
}
