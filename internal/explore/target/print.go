package target

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/explore/target/naming"
)

// Print writes the actions of each buyer of the program when it ran alone.
func (c Check) Print(out io.Writer, program string) {
	fmt.Fprintf(out, "%s on %s\n", program, c.Servers)
	for _, a := range c.Buyers {
		fmt.Fprintf(out, "\nbuyer %d alone: %s -> %s (%.0f ms with every command held once)\n", a.Buyer, a.Request, cmp.Or(a.Answer, "nothing"), a.TookMS)
		for n, s := range a.Commands {
			fmt.Fprintf(out, "%4d  %-8s  %s -> %s\n", n+1, s.Server, s.Text, s.Result)
		}
		if len(a.Passed) > 0 {
			fmt.Fprintf(out, "      passed without a stop: %s\n", strings.Join(a.Passed, "; "))
		}
		if len(a.Ignored) > 0 {
			fmt.Fprintf(out, "      ignored: %s\n", strings.Join(a.Ignored, "; "))
		}
		for _, text := range a.Hidden {
			fmt.Fprintf(out, "      ignored although it matters: %s\n", text)
		}
		for _, text := range a.Varies {
			fmt.Fprintf(out, "      values in it differ between two runs: %s\n", text)
		}
		if a.Meets > 0 && a.Meets < len(a.Commands) {
			fmt.Fprintf(out, "      %d of its %d commands can meet another buyer's; only the order of these matters\n", a.Meets, len(a.Commands))
		}
		if a.Why == "" {
			what := "no sale"
			if a.Sold {
				what = "a sale"
			}
			rules := "every `never` returns no row"
			if a.doubted != nil {
				rules = "every `never` without :sold and :failed returns no row"
			}
			if a.Races != "" {
				rules = fmt.Sprintf("it breaks %s alone, with %d commands under way at once, so it races itself, unless the rule is wrong", a.Races, a.AtOnce)
			}
			if c.Orders > 0 { // true if oversell.yaml has no rules
				fmt.Fprintf(out, "      told as %s\n", what)
				continue
			}
			fmt.Fprintf(out, "      told as %s; %s\n", what, rules)
		}
	}
	if c.Orders > 0 {
		fmt.Fprintf(out, "\none after the other, the buyers came in each of %d orders\n", c.Orders)
		if len(c.Uncompared) > 0 {
			fmt.Fprintf(out, "      not compared: %s\n", strings.Join(c.Uncompared, ", "))
		}
	}
	if len(c.Pollers) == 0 {
		return
	}
	fmt.Fprintln(out, "\npollers: sent while no buyer was there")
	for _, p := range c.Pollers {
		fmt.Fprintf(out, "      %-8s  %s (%s)\n", p.Server, naming.Short(p.Text), p.Period())
	}
	fmt.Fprintf(out, "      to let them pass, write in the file\n%s\n", gates.IgnoreLine(c.Ignore))
}
