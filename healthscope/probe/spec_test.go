package probe_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// asking returns the spec of a scope with probes, after a change to it.
func asking(change func(*corev1alpha2.HealthScopeSpec)) *corev1alpha2.HealthScopeSpec {
	s := &corev1alpha2.HealthScopeSpec{ProbeMethod: "GET", ProbeEndpoint: "/health"}
	if change != nil {
		change(s)
	}
	return s
}

func TestWhatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		method, endpoint string
		want             bool
	}{{"", "", false}, {"GET", "/health", true}, {"GET", "", true}, {"", "/health", true}, {"kube-get", ".status", false}, {"kube-get", "", false}, {"kube-get", "/health", true}} {
		if got := probe.Requested(&corev1alpha2.HealthScopeSpec{ProbeMethod: c.method, ProbeEndpoint: c.endpoint}); got != c.want {
			t.Errorf("%s %s: %t, want %t", c.method, c.endpoint, got, c.want)
		}
	}
}

func TestParseFillsInDefaults(t *testing.T) {
	spec, err := probe.Parse(asking(func(s *corev1alpha2.HealthScopeSpec) {
		s.ProbeMethod, s.ProbeTimeout, s.ProbeInterval = "httpGet", new(int32(0)), new(int32(-5))
	}))
	if err != nil || spec.Method != probe.MethodGet || spec.Scheme != "http" || spec.Timeout != 10*time.Second || spec.Interval != 30*time.Second {
		t.Errorf("%+v, %v", spec, err)
	}
}

func TestParseAcceptsTheMaximum(t *testing.T) {
	spec, err := probe.Parse(asking(func(s *corev1alpha2.HealthScopeSpec) {
		s.ProbeMethod, s.ProbeScheme, s.ProbeTimeout, s.ProbeInterval = "HEAD", "HTTPS", new(int32(60)), new(int32(86400))
	}))
	if err != nil || spec.Method != probe.MethodHead || spec.Scheme != "https" || spec.Timeout != time.Minute || spec.Interval != 24*time.Hour {
		t.Errorf("%+v, %v", spec, err)
	}
}

func TestParseNamesEveryFieldThatCannotBeUsed(t *testing.T) {
	for want, change := range map[string]func(*corev1alpha2.HealthScopeSpec){
		`probe-method: "POST" is not known`:                                     func(s *corev1alpha2.HealthScopeSpec) { s.ProbeMethod = "POST" },
		`probe-method: is missing: want GET`:                                    func(s *corev1alpha2.HealthScopeSpec) { s.ProbeMethod = "" },
		`probe-method: "get" is not known`:                                      func(s *corev1alpha2.HealthScopeSpec) { s.ProbeMethod = "get" },
		`probe-port: "0" is no port: want the name of one, or 1 to 65535`:       func(s *corev1alpha2.HealthScopeSpec) { s.ProbePort = new(intstr.FromInt32(0)) },
		`probe-port: "70000" is no port: want the name of one, or 1 to 65535`:   func(s *corev1alpha2.HealthScopeSpec) { s.ProbePort = new(intstr.FromInt32(70000)) },
		`probe-port: "80/../x" is no port: want the name of one, or 1 to 65535`: func(s *corev1alpha2.HealthScopeSpec) { s.ProbePort = new(intstr.FromString("80/../x")) },
		`probe-timeout: 61 is out of range`:                                     func(s *corev1alpha2.HealthScopeSpec) { s.ProbeTimeout = new(int32(61)) },
		`probe-interval: 86401 is out of range`:                                 func(s *corev1alpha2.HealthScopeSpec) { s.ProbeInterval = new(int32(86401)) },
		`failure-rate-threshold: -0.1 is out of range`:                          func(s *corev1alpha2.HealthScopeSpec) { s.FailureRateThreshold = new(-0.1) },
		`healthy-rate-threshold: 100.5 is out of range`:                         func(s *corev1alpha2.HealthScopeSpec) { s.HealthyRateThreshold = new(100.5) },
	} {
		if _, err := probe.Parse(asking(change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that says %q", err, want)
		}
	}
	_, err := probe.Parse(&corev1alpha2.HealthScopeSpec{ProbeMethod: "x", ProbeEndpoint: "y", ProbeTimeout: new(int32(1000))})
	for _, field := range []string{"probe-method", "probe-endpoint", "probe-timeout"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}

func TestThresholdIsAPercentage(t *testing.T) {
	for percent, want := range map[float64]bool{-1: false, 0: false, 0.5: true, 100: true, 100.5: false} {
		if err := probe.CheckRollup(&corev1alpha2.HealthScopeSpec{HealthThresholdPercentage: &percent}); (err == nil) != want {
			t.Errorf("%g: %v", percent, err)
		}
	}
	if err := probe.CheckRollup(&corev1alpha2.HealthScopeSpec{}); err != nil {
		t.Error(err)
	}
}

func TestRatesAreSharesOrPercent(t *testing.T) {
	for rate, want := range map[float64]float64{0: 0, 0.3: 0.3, 1: 1, 30: 0.3, 100: 1} {
		spec, err := probe.Parse(asking(func(s *corev1alpha2.HealthScopeSpec) { s.FailureRateThreshold, s.HealthyRateThreshold = &rate, &rate }))
		if err != nil || spec.Failure != want || spec.Healthy != want {
			t.Errorf("%g: %g and %g, %v; want %g", rate, spec.Failure, spec.Healthy, err, want)
		}
	}
}

func TestWhichPortIsProbed(t *testing.T) {
	tcp := func(name string, number int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number}
	}
	udp := corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}
	for name, c := range map[string]struct {
		ports    []corev1.ServicePort
		external bool
		want     *intstr.IntOrString
		target   string
		problem  string
	}{
		"the only one":         {ports: []corev1.ServicePort{tcp("", 8080)}, target: "http:front:8080"},
		"the only one of TCP":  {ports: []corev1.ServicePort{udp, tcp("web", 80)}, target: "http:front:80"},
		"the one called http":  {ports: []corev1.ServicePort{tcp("metrics", 9090), tcp("http", 80)}, target: "http:front:80"},
		"none is called http":  {ports: []corev1.ServicePort{tcp("a", 1), tcp("b", 2)}, problem: "none is named http"},
		"by name":              {ports: []corev1.ServicePort{tcp("http", 80), tcp("admin", 81)}, want: new(intstr.FromString("admin")), target: "http:front:81"},
		"by number":            {ports: []corev1.ServicePort{tcp("http", 80), tcp("admin", 81)}, want: new(intstr.FromInt32(81)), target: "http:front:81"},
		"by number, in quotes": {ports: []corev1.ServicePort{tcp("http", 80), tcp("admin", 81)}, want: new(intstr.FromString("81")), target: "http:front:81"},
		"one that it has not":  {ports: []corev1.ServicePort{tcp("http", 80)}, want: new(intstr.FromInt32(10250)), problem: `no TCP port "10250"`},
		"a port of UDP":        {ports: []corev1.ServicePort{udp, tcp("http", 80)}, want: new(intstr.FromString("dns")), problem: `no TCP port "dns"`},
		"none":                 {problem: "no TCP port"},
		"a name outside":       {ports: []corev1.ServicePort{tcp("http", 80)}, external: true, problem: "ExternalName"},
	} {
		t.Run(name, func(t *testing.T) {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "front"}, Spec: corev1.ServiceSpec{Ports: c.ports}}
			if c.external {
				service.Spec.Type = corev1.ServiceTypeExternalName
			}
			spec, err := probe.Parse(asking(func(s *corev1alpha2.HealthScopeSpec) { s.ProbePort = c.want }))
			if err != nil {
				t.Fatal(err)
			}
			target, _, problem := probe.NewService(service).Target(spec)
			if target != c.target || !strings.Contains(problem, c.problem) || (problem == "") != (c.problem == "") {
				t.Errorf("%q, %q; want %q, %q", target, problem, c.target, c.problem)
			}
		})
	}
}

func TestWhichServicesAreProbed(t *testing.T) {
	ref := probe.Ref{Cluster: "edge", Name: "front"}
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		referred, bundled   bool
		want                bool
	}{
		"nothing asks for it":          {},
		"its label names the scope":    {labels: map[string]string{"healthscope.core.oam.dev/name": "shop"}, want: true},
		"a label is the scope":         {labels: map[string]string{"healthscope.core.oam.dev/shop": "true"}, want: true},
		"a label says no":              {labels: map[string]string{"healthscope.core.oam.dev/shop": "false"}},
		"a label is of another scope":  {labels: map[string]string{"healthscope.core.oam.dev/bar": "true", "healthscope.core.oam.dev/name": "bar"}},
		"the scope refers to it":       {referred: true, want: true},
		"it is in a bundle":            {bundled: true},
		"it is in a bundle, and asks":  {bundled: true, annotations: map[string]string{"healthscope.core.oam.dev/probe": "true"}, want: true},
		"it asks, and is in no bundle": {annotations: map[string]string{"healthscope.core.oam.dev/probe": "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &probe.Want{Referred: map[probe.Ref]struct{}{}, Found: map[probe.Ref]struct{}{}}
			if c.referred {
				w.Referred[ref] = struct{}{}
			}
			if c.bundled {
				w.Found[ref] = struct{}{}
			}
			s := probe.NewService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "front", Labels: c.labels, Annotations: c.annotations}})
			if got := w.Wants("shop", "edge", s); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
			if w.Wants("shop", "other", s) && (c.referred || c.bundled) {
				t.Error("it is probed in another cluster than the one that is meant")
			}
		})
	}
}
