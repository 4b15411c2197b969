package fleet

import "github.com/healthscope/healthscope/healthscope"

// maxErrorText is the maximum length of an error in a message, in bytes.
const maxErrorText = 200

// shortened returns the text of an error, shortened to maxErrorText.
func shortened(text string) string { return healthscope.Shorten(text, maxErrorText) }

func causeSuffix(cause string) string {
	if cause == "" {
		return ""
	}
	return ": " + cause
}
