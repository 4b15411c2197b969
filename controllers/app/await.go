package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const (
	// awaitPause is the time between attempts to reach the API server, and awaitTimeout the deadline of one.
	awaitPause, awaitTimeout = 2 * time.Second, 10 * time.Second
	// awaitHeader is how long a caller of the probes may take for its request.
	awaitHeader = 5 * time.Second
)

// awaitAPIServer waits until the API server answers, whatever it says. Without it nothing can be set up, and a program that
// ends would be started again and again. It returns when ctx ends, too. Meanwhile the probes say that it lives, and is not ready.
func awaitAPIServer(ctx context.Context, config *rest.Config, probes string, logger logr.Logger) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return errors.Wrap(err, "cannot make a client for the API server")
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return errors.Wrap(err, "cannot find out where the API server is")
	}
	answers := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, awaitTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.JoinPath("version").String(), http.NoBody)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
		if answer.StatusCode >= http.StatusInternalServerError {
			return errors.Errorf("it answers %s", answer.Status)
		}
		return nil
	}
	problem := answers(ctx)
	if problem == nil {
		return nil
	}
	stop, err := serveWaiting(ctx, probes)
	if err != nil {
		return err
	}
	defer stop()
	said := ""
	_ = wait.PollUntilContextCancel(ctx, awaitPause, true, func(ctx context.Context) (bool, error) {
		if text := problem.Error(); text != said {
			logger.Error(problem, "The API server does not answer; the start waits for it")
			said = text
		}
		problem = answers(ctx)
		return problem == nil, nil
	}) // It fails only when the program is stopping, which is no failure.
	return nil
}

// serveWaiting answers to the probes of a program that waits for its API server, until stop is called.
func serveWaiting(ctx context.Context, address string) (stop func(), err error) {
	if address == "0" || address == "" {
		return func() {}, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, errors.Wrap(err, "cannot listen for probes")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the API server does not answer", http.StatusInternalServerError)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: awaitHeader, ReadTimeout: awaitHeader, WriteTimeout: awaitHeader}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // It ends when it is closed.
	}()
	return func() {
		_ = server.Close() // The next one to listen will say what is wrong.
		<-ended
	}, nil
}
