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
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
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

// run serves until the context ends and then lets requests finish for a moment.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	if err != nil {
		return err
	}
	opts, err := c.simulatorOptions()
	if err != nil {
		return err
	}
	seed, err := fixtures(c.seed)
	if err != nil {
		return err
	}
	sim := simulator.New(opts)
	if err := sim.Seed(seed...); err != nil {
		return err
	}
	listeners := []*listener{{name: "aai", address: c.listen, handler: sim, tls: c.tls, limit: c.maxConnections}}
	if c.controlListen != "" {
		listeners = append(listeners, &listener{name: "control", address: c.controlListen, handler: sim.Control()})
	}
	return serve(ctx, listeners, stdout, log.New(stderr, "", log.LstdFlags))
}

// listener is one address and what it serves.
type listener struct {
	name, address string
	handler       http.Handler
	tls           tlsSettings
	limit         int  // of open connections, 0 for none
	secure        bool // by HTTPS; the server's own TLSConfig says so for HTTP too, once it serves
	socket        net.Listener
	server        *http.Server
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
	host, _, _ := net.SplitHostPort(l.address) // what is wrong with the address shows below
	config, err := l.tls.config(host)
	if err != nil {
		return fmt.Errorf("cannot serve %s: %w", l.name, err)
	}
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
	if err != nil {
		return fmt.Errorf("cannot listen for %s: %w", l.name, err)
	}
	if l.limit > 0 {
		socket = &limited{Listener: socket, limit: int64(l.limit)}
	}
	l.socket, l.secure = socket, config != nil
	l.server = &http.Server{
		Handler: l.handler, ErrorLog: logger, TLSConfig: config,
		// Requests see the end of the context, so that a delayed one does not hold up the stop.
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
	}
	return nil
}

func (l *listener) serve() error {
	var err error
	if l.secure {
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
	if l.secure {
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
