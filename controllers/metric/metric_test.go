package metric

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func TestPlainText(t *testing.T) {
	const want = "1 for the health of the scope: healthy or unknown."
	if got := plainText("1 for the [health](healthscope.md#status) of the [scope](x.md): `healthy` or `unknown`."); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValueHasTheTypeOfTheMetric(t *testing.T) {
	for _, kind := range []Type{Gauge, Counter} {
		m := Metric{Desc: prometheus.NewDesc("healthscope_x", "x", nil, nil), Type: kind}
		var got dto.Metric
		if err := m.Value(1).Write(&got); err != nil {
			t.Fatal(err)
		}
		if (got.GetCounter() != nil) != (kind == Counter) || (got.GetGauge() != nil) != (kind == Gauge) {
			t.Errorf("a %v is exposed as %v", kind, &got)
		}
	}
}
