package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// explanation says by which troubles errors in the logs are explained.
type explanation struct {
	// name is what people are told.
	name string
	// lines matches the lines that are explained.
	lines *regexp.Regexp
	// troubles are those that must have been, from within until grace after the end of them.
	troubles []trouble
	grace    time.Duration
	// lasting is how long such a trouble must have lasted. The default is any time.
	lasting time.Duration
	// others says that the troubles of other replicas explain it, too.
	others bool
}

// logLine is a line of a log that tells of an error, or that is none of the logger's.
type logLine struct {
	at   time.Time
	text string
}

// logPattern matches a line of the logger: time, level, and the rest.
var logPattern = regexp.MustCompile(`^time=(\S+) level=(\S+) (.*)$`)

// errorsIn returns the lines of a log at error level, and all those that the logger has not written: last words, panics and what
// the runtime or a library has printed. Such a line has the time of the next line of the logger, which is often that of the next
// process, or else that of the end of the log.
func errorsIn(log io.Reader, end time.Time) ([]logLine, error) {
	var all []logLine
	timeless := 0
	stamp := func(at time.Time) {
		for i := range all[len(all)-timeless:] {
			all[len(all)-timeless+i].at = at
		}
		timeless = 0
	}
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		parts := logPattern.FindStringSubmatch(scanner.Text())
		if parts == nil {
			all = append(all, logLine{text: scanner.Text()})
			timeless++
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, parts[1])
		if err != nil {
			return nil, fmt.Errorf("cannot read the time of log line %q: %w", scanner.Text(), err)
		}
		stamp(at)
		if strings.HasPrefix(parts[2], "ERROR") {
			all = append(all, logLine{at, parts[3]})
		}
	}
	stamp(end)
	return all, scanner.Err()
}

// verdict is what the logs say.
type verdict struct {
	// Explained counts the lines with an explanation, by its name.
	Explained map[string]int `json:"explained"`
	// Unexplained are the others, with the name of the log.
	Unexplained []string `json:"unexplained"`
}

// explain looks for an explanation of each line of the log of a replica.
func (v *verdict) explain(name string, lines []logLine, incidents []incident) {
	for _, line := range lines {
		i := slices.IndexFunc(explanations, func(e explanation) bool { return e.explains(name, line, incidents) })
		if i < 0 {
			v.Unexplained = append(v.Unexplained, fmt.Sprintf("%s: %s %s", name, line.at.Format("15:04:05.000"), line.text))
			continue
		}
		v.Explained[explanations[i].name]++
	}
}

// explains says whether a line in the log of a replica has this explanation. A trouble of another replica does so only if the explanation says that.
func (e explanation) explains(replica string, line logLine, incidents []incident) bool {
	if !e.lines.MatchString(line.text) {
		return false
	}
	return slices.ContainsFunc(incidents, func(i incident) bool {
		return slices.Contains(e.troubles, i.Trouble) && (e.others || i.Replica == "" || i.Replica == replica) && i.End.Sub(i.Begin) >= e.lasting &&
			!line.at.Before(i.Begin.Truncate(time.Millisecond)) && line.at.Before(i.End.Add(e.grace))
	})
}

// readLogs looks for explanations in the logs of all seats.
func (s *soaking) readLogs() (verdict, error) {
	v := verdict{Explained: map[string]int{}}
	incidents := s.all()
	for _, one := range s.seats {
		file, err := os.Open(one.LogPath()) //nolint:gosec // It is where this program has put it.
		if err != nil {
			return v, fmt.Errorf("cannot read the log of %s: %w", one.Name, err)
		}
		lines, err := errorsIn(file, time.Now())
		if err := errors.Join(err, file.Close()); err != nil {
			return v, fmt.Errorf("cannot read the log of %s: %w", one.Name, err)
		}
		v.explain(one.Name, lines, incidents)
	}
	return v, nil
}

// messageOf is the message of a log line, without the name of the log and the time before it and the fields behind it.
var messageOf = regexp.MustCompile(`msg="[^"]*"`)

// err returns an error when lines have no explanation, with the first line of each message, and how many more there are.
func (v verdict) err() error {
	if len(v.Unexplained) == 0 {
		return nil
	}
	first, more := map[string]int{}, map[string]int{}
	for i, line := range v.Unexplained {
		message := cmp.Or(messageOf.FindString(line), line) // A program's last words have none.
		if _, ok := first[message]; !ok {
			first[message] = i
		} else {
			more[message]++
		}
	}
	shown := make([]string, 0, len(first))
	for _, message := range slices.SortedFunc(maps.Keys(first), func(a, b string) int { return first[a] - first[b] }) {
		line := v.Unexplained[first[message]]
		if more[message] > 0 {
			line += fmt.Sprintf(" (and %d more with this message)", more[message])
		}
		shown = append(shown, line)
	}
	return fmt.Errorf("%d errors in the logs have no explanation:\n%s", len(v.Unexplained), strings.Join(shown, "\n"))
}

// names are the names of the explanations that were needed, in order.
func (v verdict) names() []string { return slices.Sorted(maps.Keys(v.Explained)) }
