package probe

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// Service holds the fields of a Service that probes need.
type Service struct {
	// Name and UID are those of the Service. Component is the OAM component that its label names; empty without the label.
	Name, UID, Component string
	// Scopes are the scopes that its labels name. Annotated is true when its annotation asks for probes.
	Scopes    []string
	Annotated bool
	// External is true for a Service of type ExternalName.
	External bool
	// Ports are its TCP ports.
	Ports []Port
}

// Port is a port of a Service.
type Port struct {
	Name   string
	Number int32
}

// NewService returns the fields of a Service that probes need.
func NewService(s *corev1.Service) Service {
	of := Service{
		Name: s.Name, UID: string(s.UID), Component: s.Labels[corev1alpha2.LabelComponent], External: s.Spec.Type == corev1.ServiceTypeExternalName,
		Scopes: corev1alpha2.ScopesOf(s.Labels), Annotated: s.Annotations[corev1alpha2.AnnotationProbe] == "true",
	}
	for _, p := range s.Spec.Ports {
		if p.Protocol == corev1.ProtocolTCP || p.Protocol == "" {
			of.Ports = append(of.Ports, Port{p.Name, p.Port})
		}
	}
	return of
}

// defaultPort is the name of the port that is probed of a Service with several ones.
const defaultPort = "http"

// port returns the port that is probed, or the reason why there is none.
func (s Service) port(want intstr.IntOrString) (port Port, problem string) {
	switch {
	case s.External:
		return port, "it is an ExternalName, which leads out of the cluster"
	case len(s.Ports) == 0:
		return port, "it has no TCP port"
	case want == intstr.IntOrString{} && len(s.Ports) == 1:
		return s.Ports[0], ""
	}
	for _, p := range s.Ports {
		switch {
		case want == intstr.IntOrString{} && p.Name == defaultPort,
			want.Type == intstr.String && p.Name == want.StrVal,
			want.Type == intstr.Int && p.Number == want.IntVal && want.IntVal != 0:
			return p, ""
		}
	}
	if want == (intstr.IntOrString{}) {
		return port, "it has several ports, and none is named http: say which one in probe-port"
	}
	return port, fmt.Sprintf("it has no TCP port %q", want.String())
}

// Target returns the name under which the API server proxies to the Service in the path of services/proxy, and the number of
// the port. It returns a problem when the Service cannot be probed.
func (s Service) Target(spec Spec) (target, port, problem string) {
	p, problem := s.port(spec.Port)
	if problem != "" {
		return "", "", problem
	}
	port = strconv.Itoa(int(p.Number))
	return fmt.Sprintf("%s:%s:%s", spec.Scheme, s.Name, port), port, ""
}
