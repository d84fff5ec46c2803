// Command shop is Pay Once: a course shop that charges a card exactly once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// commands are what the program can do. Without one it serves.
type commands struct {
	Serve   serveCommand   `cmd:"" default:"withargs" help:"Sell courses over HTTP (what happens without a command)."`
	Migrate migrateCommand `cmd:"" help:"Bring the database's schema up to date, and end."`
	Stuck   stuckCommand   `cmd:"" help:"List what waits for a person, because nobody could tell what became of it."`
	Refund  refundCommand  `cmd:"" help:"Give money back, the whole payment or a part of it."`
	Lab     labCommand     `cmd:"" help:"Race workers for one key on a real PostgreSQL, in every broken and every right way."`
	Storm   stormCommand   `cmd:"" help:"Send every payment many times at once to running shops, and see that each order is charged once."`
	Stripe  stripeCommand  `cmd:"" help:"Be the local Stripe. The shop starts one by itself when it needs it."`
}

func main() {
	// The first signal ends the program in order, the second at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs one command and gives the program's exit status. Whatever keeps the
// program from working is one line on stderr that says what to do.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	exited := -1
	parser, err := kong.New(&commands{},
		kong.Name("shop"),
		kong.Description("A course shop that charges a card exactly once. Every flag can be given as the environment variable behind it."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.Bind(streams{stdout, stderr}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		panic("shop: bug: " + err.Error())
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err == nil {
		err = command.Run()
	} else {
		err = misread(err)
	}
	if err != nil && !(errors.Is(err, context.Canceled) && ctx.Err() != nil) {
		fmt.Fprintln(stderr, "shop: "+oneLine(err))
		return 1
	}
	return 0
}

// streams are the program's outputs.
type streams struct{ out, err io.Writer }

// help also shows the flags of serve where no command was named: they are the
// shop's, and nobody should have to know the command that is left out.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || ctx.Selected() != nil {
		return err
	}
	serve, err := kong.Trace(ctx.Kong, []string{"serve"})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(ctx.Stdout)
	return kong.DefaultHelpPrinter(options, serve)
}

// misread says of a setting that cannot be read where to look, and which
// variable it is if it came from one: most are set so.
func misread(err error) error {
	text, _, fromVariable := strings.Cut(err.Error(), " (from envar ")
	text = flag.ReplaceAllStringFunc(text, func(name string) string {
		variable := strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(name, "--"), "-", "_"))
		if _, set := os.LookupEnv(variable); set || fromVariable {
			return variable
		}
		return name
	})
	return errors.New(text + ": see shop --help")
}

// flag is the name of a flag where an error about its value has it.
var flag = regexp.MustCompile(`^--[a-z-]+`)

// oneLine gives an error's text on one line.
func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}
