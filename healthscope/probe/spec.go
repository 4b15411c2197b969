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

// Defaults and upper bounds of the values in the spec of a scope.
const (
	DefaultTimeout  = 10 * time.Second
	MaxTimeout      = 60 * time.Second
	DefaultInterval = 30 * time.Second
	MaxInterval     = 24 * time.Hour
)

// Spec describes how the Services of a scope are probed. It is comparable.
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

// Requested reports whether a scope asks for probes, even if its fields are invalid. `kube-get` is the method of OAM's first
// implementation; it stands for the evaluation without probes.
func Requested(s *corev1alpha2.HealthScopeSpec) bool {
	if s.ProbeMethod == "kube-get" {
		return s.ProbeEndpoint != "" && s.ProbeEndpoint != ".status"
	}
	return s.ProbeMethod != "" || s.ProbeEndpoint != ""
}

// Parse returns the Spec of a scope that asks for probes, or an error that names every invalid field.
func Parse(s *corev1alpha2.HealthScopeSpec) (Spec, error) {
	parsed := Spec{Path: s.ProbeEndpoint, Scheme: "http", Thresholds: Thresholds{Failure: consecutive}}
	var problems []string
	reject := func(field string, err error) {
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
		reject("probe-method", errors.New("is missing: want GET, httpGet or HEAD"))
	default:
		reject("probe-method", errors.Errorf("%q is not known: want GET, httpGet or HEAD", s.ProbeMethod))
	}
	reject("probe-endpoint", checkEndpoint(s.ProbeEndpoint))
	if s.ProbeScheme != "" {
		parsed.Scheme = strings.ToLower(s.ProbeScheme) // The CRD allows HTTP and HTTPS.
	}
	if s.ProbePort != nil {
		parsed.Port = intstr.Parse(s.ProbePort.String())
		reject("probe-port", checkPort(parsed.Port))
	}
	var err error
	parsed.Timeout, err = parseSeconds(s.ProbeTimeout, DefaultTimeout, MaxTimeout)
	reject("probe-timeout", err)
	parsed.Interval, err = parseSeconds(s.ProbeInterval, DefaultInterval, MaxInterval)
	reject("probe-interval", err)
	if s.FailureRateThreshold != nil {
		parsed.Failure, err = parseRate(*s.FailureRateThreshold)
		reject("failure-rate-threshold", err)
	}
	if s.HealthyRateThreshold != nil {
		parsed.Healthy, err = parseRate(*s.HealthyRateThreshold)
		reject("healthy-rate-threshold", err)
	}
	if len(problems) > 0 {
		return Spec{}, errors.New(strings.Join(problems, "; "))
	}
	return parsed, nil
}

// CheckRollup returns an error for invalid OAM fields that are not about probes.
func CheckRollup(s *corev1alpha2.HealthScopeSpec) error {
	if p := s.HealthThresholdPercentage; p != nil && (*p <= 0 || *p > 100) {
		return errors.Errorf("health-threshold-percentage: %g is out of range: want more than 0, and 100 at most", *p)
	}
	return nil
}

// parseSeconds returns a duration from a number of seconds. As in OAM's runtime, a number below 1 stands for the default.
func parseSeconds(value *int32, defaultValue, maximum time.Duration) (time.Duration, error) {
	if value == nil || *value < 1 {
		return defaultValue, nil
	}
	if d := time.Duration(*value) * time.Second; d <= maximum {
		return d, nil
	}
	return 0, errors.Errorf("%d is out of range: want %d at most", *value, maximum/time.Second)
}

// parseRate returns a rate as a share from 0 to 1. A number above 1 is a percentage.
func parseRate(rate float64) (float64, error) {
	switch {
	case rate >= 0 && rate <= 1:
		return rate, nil
	case rate > 1 && rate <= 100:
		return rate / 100, nil
	}
	return 0, errors.Errorf("%g is out of range: want 0 to 1, or a percentage", rate)
}

// checkPort returns an error for an invalid port.
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

// maxEndpoint bounds an endpoint, in bytes.
const maxEndpoint = 256

// checkEndpoint returns an error for an endpoint that cannot be used. A valid endpoint is a path that means the same to the
// API server, which puts it into another URL, and to the target. It therefore has nothing that is escaped or normalised.
func checkEndpoint(endpoint string) error {
	isForbidden := func(c rune) bool {
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		return !isLetter && !strings.ContainsRune("0123456789-._~/", c)
	}
	problem := ""
	switch {
	case endpoint == "":
		return errors.New("is missing: want a path such as /health")
	case len(endpoint) > maxEndpoint:
		problem = fmt.Sprintf("has %d bytes: want %d at most", len(endpoint), maxEndpoint)
	case endpoint[0] != '/':
		problem = "is no path: want one that begins with a slash, without scheme, host and port"
	case strings.ContainsFunc(endpoint, isForbidden):
		problem = "has characters other than letters, digits and -._~/: want a path without query, fragment and escapes"
	case strings.Contains(endpoint, "//"):
		problem = "has two slashes in a row"
	default:
		for segment := range strings.SplitSeq(endpoint, "/") {
			if segment == "." || segment == ".." {
				problem = fmt.Sprintf("has a segment %q", segment)
				break
			}
		}
	}
	if problem == "" {
		return nil
	}
	return errors.Errorf("%.70q %s", endpoint, problem)
}
