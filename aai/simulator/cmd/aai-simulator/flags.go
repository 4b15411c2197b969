package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/healthscope/healthscope/aai/simulator"
)

// settings are the command line.
type settings struct {
	listen, controlListen string
	maxConnections        int
	seed                  string
	user, passwordFile    string
	versions              string
	impliedDelete         map[string][]string
	options               simulator.Options // what needs no more than copying
	tls                   tlsSettings
}

// flags declares the command line.
func (c *settings) flags(stderr io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet("aai-simulator", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { usage(f) }
	o, t := &c.options, &c.tls
	f.StringVar(&c.listen, "listen", "127.0.0.1:8447", "`address` of the A&AI API; port 0 takes a free one")
	f.StringVar(&c.controlListen, "control-listen", "127.0.0.1:8448",
		"`address` of the control surface, which has no authentication; empty for none")
	f.IntVar(&c.maxConnections, "max-connections", 0, "`number` of connections to the A&AI API that may be open at a time; more are reset; 0 for any")
	f.StringVar(&c.seed, "seed", seedBuiltIn, "`file` with the first inventory: a JSON array of {\"uri\": \"...\", \"body\": {...}}, parents first; "+
		"builtin for a region, a tenant and two VNFs, none for nothing")
	f.StringVar(&c.user, "user", "", "`name` for Basic authentication; empty for none")
	f.StringVar(&c.passwordFile, "password-file", "", "`file` with the password of --user")
	f.StringVar(&t.certFile, "tls-cert", "", "certificate `file`; serves the A&AI API by HTTPS")
	f.StringVar(&t.keyFile, "tls-key", "", "key `file` of --tls-cert")
	f.StringVar(&t.generate, "tls-generate", "", "serves HTTPS with a certificate made for the purpose, and writes ca.pem, client.pem and client-key.pem to this `directory`")
	f.StringVar(&t.clientCA, "tls-client-ca", "", "`file` with the CA of client certificates, which are required then")
	f.StringVar(&t.fault, "tls-fault", "", "`what` is wrong with HTTPS: handshake lets every handshake fail, expired has --tls-generate make a certificate that has expired")
	f.StringVar(&o.BasePath, "base-path", "/aai", "what every `path` of the API starts with")
	f.StringVar(&c.versions, "versions", "", `schema versions to serve, a `+"`list`"+` like "v24,v32"; empty for v24 to v32`)
	f.StringVar(&o.DefaultVersion, "default-version", "", "schema `version` of /aai/latest and of events; empty for the newest")
	f.IntVar(&o.BulkLimit, "bulk-limit", 30, "`number` of operations that a bulk request may hold")
	f.DurationVar(&o.ReadTimeout, "read-timeout", 100*time.Second, "`time` after which a delayed GET is answered 400 SVC7406")
	f.Func("implied-delete", "`app=types`, like so=vserver,tenant: the application may delete children of nodes of these types by leaving them out of a PUT; * is for all types; may be given several times",
		c.addImpliedDelete)
	f.StringVar(&o.VersionOverride, "version-override", "38cf3090-6a0c-4e9d-8142-4332a7352846", "`value` that passes for any resource-version in a DELETE")
	f.BoolVar(&o.ShallowEvents, "shallow-events", false, "leave children out of events")
	f.BoolVar(&o.OneSidedEvents, "one-sided-events", false, "send no events for the other ends of relationships")
	f.BoolVar(&o.Strict, "strict", false, "log what a careful client would not send, see /__sim/violations")
	f.BoolVar(&o.Reject, "reject", false, "like --strict, and answer 400")
	return f
}

func (c *settings) addImpliedDelete(value string) error {
	app, types, ok := strings.Cut(value, "=")
	if !ok || app == "" || types == "" {
		return fmt.Errorf("%q is not of the form app=type,type", value)
	}
	if c.impliedDelete == nil {
		c.impliedDelete = map[string][]string{}
	}
	c.impliedDelete[app] = append(c.impliedDelete[app], strings.Split(types, ",")...)
	return nil
}

// usage prints the help.
func usage(f *flag.FlagSet) {
	out := f.Output()
	fmt.Fprint(out, `aai-simulator serves a simulated ONAP A&AI (aai-resources) until it gets SIGINT or SIGTERM.

Usage:
  aai-simulator [flags]

When it is ready it prints the name and the URL of each listener: "aai" is the A&AI API, "control" is for
looking at what was asked of it and for making it fail. With its defaults:

  $ curl -H 'Accept: application/json' -H 'X-FromAppId: me' -H 'X-TransactionId: 1' \
      '127.0.0.1:8447/aai/v32/cloud-infrastructure/cloud-regions?depth=1'
  $ curl 127.0.0.1:8448/__sim/requests
  $ curl 127.0.0.1:8448/__sim/faults -d '[{"method": "PUT", "status": 503, "count": 2}]'

Flags:
`)
	f.VisitAll(func(one *flag.Flag) {
		name, text := flag.UnquoteUsage(one)
		if one.DefValue != "" && one.DefValue != "false" && one.DefValue != "0" {
			text += fmt.Sprintf(" (default %s)", one.DefValue)
		}
		fmt.Fprintf(out, "  %s\n        %s\n", strings.TrimRight("--"+one.Name+" "+name, " "), text)
	})
}

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
	case c.maxConnections < 0:
		return c, fmt.Errorf("--max-connections %d is negative", c.maxConnections)
	}
	return c, c.tls.check()
}

// simulatorOptions reads what the settings refer to.
func (c settings) simulatorOptions() (simulator.Options, error) {
	opts := c.options
	opts.ImpliedDelete = c.impliedDelete
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
