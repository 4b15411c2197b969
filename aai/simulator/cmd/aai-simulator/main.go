// Command aai-simulator serves a simulated ONAP A&AI until it gets SIGINT or SIGTERM.
//
// When it is ready it prints one line per listener on standard output, the name and the URL:
//
//	aai http://127.0.0.1:8447
//	control http://127.0.0.1:8448
//
// The first is the A&AI API, below /aai; the second shows what was asked of it and makes it fail on demand. It imports
// the simulator and the standard library only.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/healthscope/healthscope/aai/simulator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "aai-simulator:", err)
		os.Exit(1)
	}
}

// settings are the command line.
type settings struct {
	listen, controlListen string
	seed                  string
	user, passwordFile    string
	certFile, keyFile     string
	versions              string
	strict                bool
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var c settings
	f := flag.NewFlagSet("aai-simulator", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&c.listen, "listen", "127.0.0.1:8447", "address of the A&AI API; port 0 takes a free one")
	f.StringVar(&c.controlListen, "control-listen", "127.0.0.1:8448",
		"address of the control surface, which has no authentication; empty for none")
	f.StringVar(&c.seed, "seed", "", `file with the first inventory: a JSON array of {"uri": "...", "body": {...}}, parents first`)
	f.StringVar(&c.user, "user", "", "name for Basic authentication; empty for none")
	f.StringVar(&c.passwordFile, "password-file", "", "file with the password of --user")
	f.StringVar(&c.certFile, "tls-cert", "", "certificate file; serves the A&AI API by HTTPS")
	f.StringVar(&c.keyFile, "tls-key", "", "key file of --tls-cert")
	f.StringVar(&c.versions, "versions", "", `schema versions to serve, like "v24,v32" (default v24 to v32)`)
	f.BoolVar(&c.strict, "strict", false, "log what a careful client would not send, see /__sim/violations")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	switch {
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case (c.user == "") != (c.passwordFile == ""):
		return c, errors.New("--user and --password-file need each other")
	case (c.certFile == "") != (c.keyFile == ""):
		return c, errors.New("--tls-cert and --tls-key need each other")
	}
	return c, nil
}

// options reads what the settings refer to.
func (c settings) options() (simulator.Options, error) {
	opts := simulator.Options{Strict: c.strict}
	if c.versions != "" {
		opts.Versions = strings.Split(c.versions, ",")
	}
	if c.passwordFile != "" {
		password, err := os.ReadFile(c.passwordFile)
		if err != nil {
			return opts, fmt.Errorf("cannot read password file: %w", err)
		}
		opts.Users = map[string]string{c.user: strings.TrimRight(string(password), "\r\n")}
	}
	return opts, opts.Validate()
}

func (c settings) fixtures() ([]simulator.Fixture, error) {
	if c.seed == "" {
		return nil, nil
	}
	file, err := os.Open(c.seed)
	if err != nil {
		return nil, fmt.Errorf("cannot open seed file: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing is lost when closing a file that was only read
	fixtures, err := simulator.ReadFixtures(file)
	if err != nil {
		return nil, fmt.Errorf("seed file %q: %w", c.seed, err)
	}
	return fixtures, nil
}

// run serves until the context ends and then lets requests finish for a moment.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	opts, err := c.options()
	if err != nil {
		return err
	}
	fixtures, err := c.fixtures()
	if err != nil {
		return err
	}
	sim := simulator.New(opts)
	if err := sim.Seed(fixtures...); err != nil {
		return err
	}
	listeners := []*listener{{name: "aai", address: c.listen, handler: sim, certFile: c.certFile, keyFile: c.keyFile}}
	if c.controlListen != "" {
		listeners = append(listeners, &listener{name: "control", address: c.controlListen, handler: sim.Control()})
	}
	return serve(ctx, listeners, stdout, log.New(stderr, "", log.LstdFlags))
}

// listener is one address and what it serves.
type listener struct {
	name, address     string
	handler           http.Handler
	certFile, keyFile string // for HTTPS
	socket            net.Listener
	server            *http.Server
}

// Time limits: a request or its answer may be as slow as the slowest fault one would simulate, but not for ever.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = time.Minute
	answerTimeout = 10 * time.Minute
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 5 * time.Second
)

// serve opens all listeners, announces them and serves until the context ends or one fails.
func serve(ctx context.Context, listeners []*listener, stdout io.Writer, logger *log.Logger) error {
	for _, l := range listeners {
		if err := l.open(ctx, logger); err != nil {
			closeAll(listeners)
			return err
		}
	}
	var serving sync.WaitGroup
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		serving.Go(func() { failed <- l.serve() })
	}
	cause := announce(listeners, stdout)
	if cause == nil {
		select {
		case <-ctx.Done():
		case cause = <-failed:
		}
	}
	err := stopAll(context.WithoutCancel(ctx), listeners)
	serving.Wait()
	return errors.Join(cause, err)
}

func announce(listeners []*listener, stdout io.Writer) error {
	for _, l := range listeners {
		if _, err := fmt.Fprintln(stdout, l.name, l.url()); err != nil {
			return fmt.Errorf("cannot announce %s: %w", l.name, err)
		}
	}
	return nil
}

func (l *listener) open(ctx context.Context, logger *log.Logger) error {
	config, err := l.tls()
	if err != nil {
		return err
	}
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
	if err != nil {
		return fmt.Errorf("cannot listen for %s: %w", l.name, err)
	}
	l.socket = socket
	l.server = &http.Server{
		Handler: l.handler, ErrorLog: logger, TLSConfig: config,
		// Requests see the end of the context, so that a delayed one does not hold up the stop.
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
	}
	return nil
}

// tls returns the configuration for HTTPS, nil for HTTP.
func (l *listener) tls() (*tls.Config, error) {
	if l.certFile == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(l.certFile, l.keyFile)
	if err != nil {
		return nil, fmt.Errorf("cannot load certificate of %s: %w", l.name, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func (l *listener) serve() error {
	var err error
	if l.server.TLSConfig != nil {
		err = l.server.ServeTLS(l.socket, "", "")
	} else {
		err = l.server.Serve(l.socket)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("cannot serve %s: %w", l.name, err)
}

func (l *listener) url() string {
	scheme := "http"
	if l.certFile != "" {
		scheme = "https"
	}
	return scheme + "://" + l.socket.Addr().String()
}

// stopAll lets requests finish and closes what does not.
func stopAll(ctx context.Context, listeners []*listener) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var problems []error
	for _, l := range listeners {
		if l.server.Shutdown(ctx) == nil {
			continue
		}
		if err := l.server.Close(); err != nil {
			problems = append(problems, fmt.Errorf("cannot stop %s: %w", l.name, err))
		}
	}
	return errors.Join(problems...)
}

func closeAll(listeners []*listener) {
	for _, l := range listeners {
		if l.socket != nil {
			_ = l.socket.Close() // the error that led here is the one to report
		}
	}
}
