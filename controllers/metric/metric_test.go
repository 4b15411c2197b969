package metric

import "testing"

func TestTheHelpIsPlainText(t *testing.T) {
	const want = "1 for the health of the scope: healthy or unknown."
	if got := plain("1 for the [health](healthscope.md#status) of the [scope](x.md): `healthy` or `unknown`."); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
