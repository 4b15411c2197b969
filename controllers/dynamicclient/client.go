// Package dynamicclient makes a dynamic client of client-go's that reads what it watches with half of the work.
//
// The decoders that client-go has for it go over each watched object twelve times, twice each for: where it ends in the
// stream, the kind of the event, the members of the event, the kind of the object, where the object ends, and what is in
// it. That is most of the CPU time of a program that begins to watch a thousand large objects, which API servers from 1.34 on
// send as events. The decoders here go over it five times. Lists are read as client-go reads them.
package dynamicclient

import (
	"net/http"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// New returns a dynamic client for the API server of a configuration, which makes its requests by an HTTP client. Of the
// configuration, what is about transport and credentials does not count: it is the HTTP client's.
func New(config *rest.Config, client *http.Client) (*dynamic.DynamicClient, error) {
	config = dynamic.ConfigFor(config)
	config.NegotiatedSerializer = serializer{config.NegotiatedSerializer}
	config.GroupVersion = nil
	config.APIPath = "/" // Does not count: the dynamic client asks for absolute paths.
	requests, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return dynamic.New(requests), nil
}
