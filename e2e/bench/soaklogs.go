package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// explanation tells which faults explain an error in the logs.
type explanation struct {
	name string
	// lines matches the lines that are explained.
	lines *regexp.Regexp
	// faults are those of which one must have been, from within until grace after its end.
	faults []fault
	grace  time.Duration
	// lasting is how long such a fault must have lasted at least.
	lasting time.Duration
	// others means that faults of other replicas explain the line, too.
	others bool
}

const (
	// soon is how much later than a fault an error may be logged: the time that a request, or a pass over A&AI, may still be under way.
	soon = 10 * time.Second
	// renewal is how long a leader tries to renew its Lease before it ends, two thirds of the time that a Lease is good for, and the time that
	// it then takes to end and to start again.
	renewal = 20 * time.Second
	// outage is how long the API server must be away at least for a leader to lose its Lease: half of the time that it tries to renew it.
	outage = 5 * time.Second
)

// Faults with the same effects.
var (
	cutOff  = []fault{faultAPIServer}
	noReply = []fault{faultResets, faultUnheard, faultHangs}
)

// noAnswer is what clients of the API server say of it while it is away, and soon after, when it begins to answer.
const noAnswer = `connection refused|connection reset by peer|broken pipe|EOF|use of closed network connection|client connection lost|server sent GOAWAY|` +
	`apiserver not ready|the server is currently unable|the server could not find the requested resource|unable to decode an event|context deadline exceeded|Client\.Timeout|` +
	`i/o timeout|unable to return a response in the time allotted|storage is \(re\)initializing|too many requests|Internal error occurred`

// explanations are the errors that faults explain. Any other error in the logs makes the soak fail. The patterns match a line
// after its level, or a whole line that the logger has not written.
var explanations = []explanation{
	{
		name: "two wanted a Lease at the same time", faults: []fault{faultLease, faultKill, faultStop, faultAPIServer}, others: true, grace: 2 * renewal,
		lines: regexp.MustCompile(`^msg="Failed to (update (lock|lease)|release lease)[^"]*" err=".*the object has been modified`),
	},
	{
		name: "the API server is away: a program that has just started", faults: cutOff, grace: soon,
		lines: regexp.MustCompile(`^healthscope: cannot run the (monitor|controller): .*(failed to get server groups: unknown$|` + noAnswer + `)`),
	},
	{
		name: "the API server has not read the rights yet", faults: cutOff, grace: soon,
		lines: regexp.MustCompile(`(is forbidden: User \\?"system:serviceaccount:healthscope-system:healthscope-(controller|monitor)\\?"|Unauthorized)`),
	},
	{
		name: "the Lease was taken away", faults: []fault{faultLease}, grace: renewal,
		lines: regexp.MustCompile(`^healthscope: cannot run the (monitor|controller): leader election lost$`),
	},
	{
		// What a leader asks for at the end of its time to renew is cut off with it, also in the middle of an answer.
		name: "the Lease was taken away: the last look at it", faults: []fault{faultLease}, grace: renewal,
		lines: regexp.MustCompile(`^msg="(Error retrieving lease lock|Unexpected error when reading response body)" err=".*context deadline exceeded"`),
	},
	{
		name: "the API server was away for longer than a Lease is renewed", faults: cutOff, lasting: outage, grace: renewal,
		lines: regexp.MustCompile(`^healthscope: cannot run the (monitor|controller): leader election lost$`),
	},
	{
		name: "requests were given up by a program that stops", faults: []fault{faultStop, faultEnd, faultLease, faultAPIServer}, grace: renewal,
		lines: regexp.MustCompile(`^msg="[^"]*" .*(context canceled|failed waiting for \*[^ ]* Informer to sync)"( lock=\S+)?$`),
	},
	{
		// controller-runtime's manager reports the end of the leadership that it gives up itself.
		name: "the leadership was given up", faults: []fault{faultStop, faultEnd}, grace: soon,
		lines: regexp.MustCompile(`^msg="error received after stop sequence was engaged" err="(leader election lost|context canceled)"$`),
	},
	{
		name: "two replicas were the first at the same time", faults: []fault{faultBegin}, grace: soon,
		lines: regexp.MustCompile(`^msg="Error initially creating lease lock" err="leases.coordination.k8s.io \\"healthscope-(monitor|controller)\\" already exists"`),
	},
	inventoryFailed("half of the requests fail", `status 500`, faultErrors),
	inventoryFailed("it is not available", `status 503`, faultRestarts),
	inventoryFailed("it limits requests", `status 429`, faultLimits),
	inventoryFailed("resource-versions are wrong", `(status 412|keeps changing)`, faultVersions),
	inventoryFailed("connections end", `(connection reset by peer|EOF|broken pipe)`, noReply...),
	inventoryFailed("answers are late", `(context deadline exceeded|Client\.Timeout|the pass took longer)`, faultSlow, faultHangs),
	{
		// Of what libraries say when a connection ends there is no list. So this comes last.
		name: "the API server is away: requests", faults: cutOff, grace: soon,
		lines: regexp.MustCompile(`^msg="[^"]*" .*(` + noAnswer + `)`),
	},
}

// inventoryFailed explains that A&AI could not be brought up to date, by what A&AI did.
func inventoryFailed(name, answer string, faults ...fault) explanation {
	return explanation{
		name: "A&AI: " + name, faults: faults, grace: soon,
		lines: regexp.MustCompile(`^msg="(Inventory|Modules) not up to date" .*` + answer),
	}
}

// explains reports whether a line in the log of a replica has this explanation.
func (e explanation) explains(replica string, line logLine, all []incident) bool {
	return e.lines.MatchString(line.text) && slices.ContainsFunc(all, func(i incident) bool {
		return slices.Contains(e.faults, i.fault) && (e.others || i.replica == "" || i.replica == replica) && i.end.Sub(i.begin) >= e.lasting &&
			!line.at.Before(i.begin.Truncate(time.Millisecond)) && line.at.Before(i.end.Add(e.grace))
	})
}

// logLine is a line of a log at error level, or one that the logger has not written.
type logLine struct {
	at   time.Time
	text string
}

// logPattern matches a line of the logger: time, level, and the rest.
var logPattern = regexp.MustCompile(`^time=(\S+) level=(\S+) (.*)$`)

// errorsIn returns the lines of a log at error level, and all those that the logger has not written: last words, panics, and what
// the runtime or a library has printed. Such a line has the time of the logger's next line, or else that of the end of the log.
func errorsIn(log io.Reader, end time.Time) ([]logLine, error) {
	var all []logLine
	stamped := 0
	stamp := func(at time.Time) {
		for ; stamped < len(all); stamped++ {
			all[stamped].at = at
		}
	}
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		parts := logPattern.FindStringSubmatch(scanner.Text())
		if parts == nil {
			all = append(all, logLine{text: scanner.Text()})
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, parts[1])
		if err != nil {
			return nil, fmt.Errorf("cannot parse the time of log line %q: %w", scanner.Text(), err)
		}
		stamp(at)
		if strings.HasPrefix(parts[2], "ERROR") {
			all = append(all, logLine{text: parts[3]})
			stamp(at)
		}
	}
	stamp(end)
	return all, scanner.Err()
}

// explainLogs counts the errors in the logs of all replicas by their explanation. It returns an error for those without one, with
// at most ten lines.
func (s *soaking) explainLogs() (explained map[string]int, err error) {
	explained = map[string]int{}
	var unexplained []string
	all := s.all()
	for _, r := range s.replicas {
		file, err := os.Open(r.LogPath())
		if err != nil {
			return nil, fmt.Errorf("cannot read the log of %s: %w", r.Name, err)
		}
		lines, err := errorsIn(file, time.Now())
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("cannot read the log of %s: %w", r.Name, err)
		}
		for _, line := range lines {
			i := slices.IndexFunc(explanations, func(e explanation) bool { return e.explains(r.Name, line, all) })
			if i < 0 {
				unexplained = append(unexplained, fmt.Sprintf("%s: %s %s", r.Name, line.at.Format("15:04:05.000"), line.text))
				continue
			}
			explained[explanations[i].name]++
		}
	}
	if len(unexplained) > 0 {
		err = fmt.Errorf("%d errors in the logs have no explanation, the first ones:\n%s", len(unexplained), strings.Join(unexplained[:min(10, len(unexplained))], "\n"))
	}
	return explained, err
}
