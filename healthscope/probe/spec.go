package probe

import (
	"fmt"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// The methods of probes.
const (
	MethodGet  = "GET"
	MethodHead = "HEAD"
)

// The defaults, and what bounds the values that scopes may give.
const (
	DefaultTimeout  = 10 * time.Second
	MaxTimeout      = 60 * time.Second
	DefaultInterval = 30 * time.Second
	MaxInterval     = 24 * time.Hour
)

// Spec is how the Services of a scope are probed. Two can be compared.
type Spec struct {
	// Method is MethodGet or MethodHead.
	Method string
	// Path is the path, with a slash in front.
	Path string
	// Scheme is http or https.
	Scheme string
	// Port is the port of the Service, by name or number; the zero value leaves it to the Service.
	Port intstr.IntOrString
	// Timeout is how long a probe may take, and Interval the time from the beginning of one to that of the next.
	Timeout, Interval time.Duration
	Thresholds
}

// Asked reports whether a scope asks for probes, whether or not that can be done. `kube-get` is the method of OAM's first
// implementation, and means what is done without probes.
func Asked(s *corev1alpha2.HealthScopeSpec) bool {
	if s.ProbeMethod == "kube-get" {
		return s.ProbeEndpoint != "" && s.ProbeEndpoint != ".status"
	}
	return s.ProbeMethod != "" || s.ProbeEndpoint != ""
}

// Parse returns how the Services of a scope that asks for probes are probed, or every field that cannot be used.
func Parse(s *corev1alpha2.HealthScopeSpec) (Spec, error) {
	parsed := Spec{Path: s.ProbeEndpoint, Scheme: "http", Thresholds: Thresholds{Failure: inARow}}
	var problems []string
	refuse := func(field string, err error) {
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", field, err))
		}
	}
	switch s.ProbeMethod {
	case "GET", "httpGet":
		parsed.Method = MethodGet
	case "HEAD":
		parsed.Method = MethodHead
	case "":
		refuse("probe-method", errors.New("is missing: want GET, httpGet or HEAD"))
	default:
		refuse("probe-method", errors.Errorf("%q is not known: want GET, httpGet or HEAD", s.ProbeMethod))
	}
	refuse("probe-endpoint", checkEndpoint(s.ProbeEndpoint))
	if s.ProbeScheme != "" {
		parsed.Scheme = strings.ToLower(s.ProbeScheme) // The CRD allows HTTP and HTTPS.
	}
	if s.ProbePort != nil {
		parsed.Port = intstr.Parse(s.ProbePort.String())
		refuse("probe-port", checkPort(parsed.Port))
	}
	var err error
	parsed.Timeout, err = seconds(s.ProbeTimeout, DefaultTimeout, MaxTimeout)
	refuse("probe-timeout", err)
	parsed.Interval, err = seconds(s.ProbeInterval, DefaultInterval, MaxInterval)
	refuse("probe-interval", err)
	if s.FailureRateThreshold != nil {
		parsed.Failure, err = share(*s.FailureRateThreshold)
		refuse("failure-rate-threshold", err)
	}
	if s.HealthyRateThreshold != nil {
		parsed.Healthy, err = share(*s.HealthyRateThreshold)
		refuse("healthy-rate-threshold", err)
	}
	if len(problems) > 0 {
		return Spec{}, errors.New(strings.Join(problems, "; "))
	}
	return parsed, nil
}

// CheckRollup returns what is wrong with those fields of OAM that have nothing to do with probes.
func CheckRollup(s *corev1alpha2.HealthScopeSpec) error {
	if p := s.HealthThresholdPercentage; p != nil && (*p <= 0 || *p > 100) {
		return errors.Errorf("health-threshold-percentage: %g is out of range: want more than 0, and 100 at most", *p)
	}
	return nil
}

// seconds returns a number of seconds of a scope. As in OAM's runtime, one below 1 means the default.
func seconds(value *int32, otherwise, most time.Duration) (time.Duration, error) {
	if value == nil || *value < 1 {
		return otherwise, nil
	}
	if d := time.Duration(*value) * time.Second; d <= most {
		return d, nil
	}
	return 0, errors.Errorf("%d is out of range: want %d at most", *value, most/time.Second)
}

// share returns a rate as a share of one. A number above 1 is meant as percent.
func share(rate float64) (float64, error) {
	switch {
	case rate >= 0 && rate <= 1:
		return rate, nil
	case rate > 1 && rate <= 100:
		return rate / 100, nil
	}
	return 0, errors.Errorf("%g is out of range: want 0 to 1, or a percentage", rate)
}

// checkPort returns what is wrong with a port.
func checkPort(port intstr.IntOrString) error {
	problems := validation.IsValidPortNum(port.IntValue())
	if port.Type == intstr.String {
		problems = validation.IsDNS1123Label(port.StrVal)
	}
	if len(problems) > 0 {
		return errors.Errorf("%.70q is no port: want the name of one, or 1 to 65535", port.String())
	}
	return nil
}
