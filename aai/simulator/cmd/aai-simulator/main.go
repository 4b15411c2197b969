// Command aai-simulator serves a simulated ONAP A&AI until it gets SIGINT or SIGTERM.
//
// When it is ready it prints one line per listener on standard output, the name and the URL:
//
//	aai http://127.0.0.1:8447
//	control http://127.0.0.1:8448
//
// The first is the A&AI API, below /aai; the second shows its requests and injects faults. The command imports the simulator and
// the standard library only.
package main

import (
	"context"
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
	"syscall"
	"time"

	"github.com/healthscope/healthscope/aai/simulator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "aai-simulator:", err)
		os.Exit(1)
	}
}

// settings are the values of the flags.
type settings struct {
	listen, controlListen string
	seed                  string
	user, passwordFile    string
	versions              string
	options               simulator.Options
	tls                   tlsSettings
}

// The values of --seed that are not files.
const (
	seedBuiltIn = "builtin"
	seedNone    = "none"
)

// flags returns the flag set.
func (c *settings) flags(stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet("aai-simulator", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, usage)
		f.PrintDefaults()
	}
	f.StringVar(&c.listen, "listen", "127.0.0.1:8447", "`address` of the A&AI API; port 0 takes a free one")
	f.StringVar(&c.controlListen, "control-listen", "127.0.0.1:8448", "`address` of the control surface, which has no authentication; empty for none")
	f.StringVar(&c.seed, "seed", seedBuiltIn, "`file` with the first inventory: a JSON array of {\"uri\": \"...\", \"body\": {...}}, parents first; "+
		"builtin for a region, a tenant and two VNFs, none for nothing")
	f.StringVar(&c.user, "user", "", "`name` for Basic authentication; empty for none")
	f.StringVar(&c.passwordFile, "password-file", "", "`file` with the password of --user")
	f.StringVar(&c.tls.certFile, "tls-cert", "", "certificate `file`; serves the A&AI API by HTTPS")
	f.StringVar(&c.tls.keyFile, "tls-key", "", "key `file` of --tls-cert")
	f.StringVar(&c.tls.directory, "tls-generate", "", "serves HTTPS with a new certificate, and writes ca.pem, client.pem and client-key.pem to this `directory`")
	f.StringVar(&c.tls.clientCA, "tls-client-ca", "", "`file` with the CA of client certificates, which are required then")
	f.StringVar(&c.versions, "versions", "", `schema versions to serve, a `+"`list`"+` like "v24,v32"; empty for v24 to v32`)
	f.IntVar(&c.options.BulkLimit, "bulk-limit", 30, "`number` of operations that a bulk request may hold")
	f.BoolVar(&c.options.Strict, "strict", false, "log requests that a correct client would not send, see /__sim/violations")
	f.BoolVar(&c.options.Reject, "reject", false, "like --strict, and answer 400")
	return f
}

// usage is the help, without the flags.
const usage = `aai-simulator serves a simulated ONAP A&AI (aai-resources) until it gets SIGINT or SIGTERM.

Usage:
  aai-simulator [flags]

When it is ready it prints the name and the URL of each listener: "aai" is the A&AI API, "control" is for
looking at what was asked of it and for making it fail. With its defaults:

  $ curl -H 'Accept: application/json' -H 'X-FromAppId: me' -H 'X-TransactionId: 1' \
      '127.0.0.1:8447/aai/v32/cloud-infrastructure/cloud-regions?depth=1'
  $ curl 127.0.0.1:8448/__sim/requests
  $ curl 127.0.0.1:8448/__sim/faults -d '[{"method": "PUT", "status": 503, "count": 2}]'

Flags:
`

// parse parses and validates the command line, and reads the password file.
func parse(args []string, stderr io.Writer) (settings, error) {
	var c settings
	f := c.flags(stderr)
	if err := f.Parse(args); err != nil {
		return c, err
	}
	switch {
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case (c.user == "") != (c.passwordFile == ""):
		return c, errors.New("--user and --password-file need each other")
	}
	if c.versions != "" {
		c.options.Versions = strings.Split(c.versions, ",")
	}
	if c.passwordFile != "" {
		password, err := os.ReadFile(c.passwordFile)
		if err != nil {
			return c, fmt.Errorf("cannot read password file: %w", err)
		}
		c.options.Users = map[string]string{c.user: strings.TrimRight(string(password), "\r\n")}
	}
	return c, errors.Join(c.options.Validate(), c.tls.check())
}

// fixtures returns the initial inventory.
func (c settings) fixtures() ([]simulator.Fixture, error) {
	switch c.seed {
	case seedBuiltIn:
		region := simulator.CloudRegion("k8s-provider", "edge-region")
		region.Body["cloud-type"] = "k8s"
		return []simulator.Fixture{
			region, simulator.Tenant("k8s-provider", "edge-region", "vfw-tenant"),
			simulator.GenericVNF("vfw-1"), simulator.VFModule("vfw-1", "vfw-1-base"),
			simulator.GenericVNF("vfw-2"), simulator.VFModule("vfw-2", "vfw-2-base"),
		}, nil
	case seedNone:
		return nil, nil
	}
	file, err := os.Open(c.seed)
	if err != nil {
		return nil, fmt.Errorf("cannot open seed file: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing is lost when closing a file that was only read
	list, err := simulator.ReadFixtures(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read seed file %q: %w", c.seed, err)
	}
	return list, nil
}

// run serves until the context ends, and then waits up to stopTimeout for requests to finish.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	seed, err := c.fixtures()
	if err != nil {
		return err
	}
	sim := simulator.New(c.options)
	if err := sim.Seed(seed...); err != nil {
		return err
	}
	listeners := []*listener{{name: "aai", address: c.listen, handler: sim, tls: c.tls}}
	if c.controlListen != "" {
		listeners = append(listeners, &listener{name: "control", address: c.controlListen, handler: sim.Control()})
	}
	return serve(ctx, listeners, stdout, log.New(stderr, "", log.LstdFlags))
}

// listener is an address and the handler that it serves.
type listener struct {
	name, address string
	handler       http.Handler
	tls           tlsSettings
	scheme        string
	socket        net.Listener
	server        *http.Server
}

// Timeouts. They bound requests and answers, but allow the slowest faults that are useful.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = time.Minute
	answerTimeout = 10 * time.Minute
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 5 * time.Second
)

// serve opens all listeners, announces them, and serves until the context ends or one fails.
func serve(ctx context.Context, listeners []*listener, stdout io.Writer, logger *log.Logger) error {
	for _, l := range listeners {
		if err := l.open(ctx, logger); err != nil {
			return err
		}
		defer l.socket.Close() //nolint:errcheck // the server has closed it, unless another listener cannot be opened
	}
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- l.serve() }()
		fmt.Fprintf(stdout, "%s %s://%s\n", l.name, l.scheme, l.socket.Addr())
	}
	var problems []error
	waiting := len(listeners)
	select {
	case <-ctx.Done():
	case err := <-ended:
		problems, waiting = append(problems, err), waiting-1
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	for _, l := range listeners {
		_ = l.server.Shutdown(stopCtx) // The requests that are still open then end with the process.
	}
	for range waiting {
		problems = append(problems, <-ended)
	}
	return errors.Join(problems...)
}

func (l *listener) open(ctx context.Context, logger *log.Logger) error {
	host, _, _ := net.SplitHostPort(l.address) // Listen reports an invalid address
	config, err := l.tls.config(host)
	if err != nil {
		return fmt.Errorf("cannot serve %s: %w", l.name, err)
	}
	if l.socket, err = (&net.ListenConfig{}).Listen(ctx, "tcp", l.address); err != nil {
		return fmt.Errorf("cannot listen for %s: %w", l.name, err)
	}
	l.scheme = "http"
	if config != nil {
		l.scheme = "https"
	}
	l.server = &http.Server{
		Handler: l.handler, ErrorLog: logger, TLSConfig: config,
		// Requests end with the context, so that a delayed one does not block Shutdown.
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
	}
	return nil
}

// serve serves until the server is shut down. It returns an error if it cannot serve.
func (l *listener) serve() error {
	serve := l.server.Serve
	if l.scheme == "https" {
		serve = func(socket net.Listener) error { return l.server.ServeTLS(socket, "", "") }
	}
	if err := serve(l.socket); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve %s: %w", l.name, err)
	}
	return nil
}
