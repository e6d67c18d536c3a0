package browser

import (
	"context"
	_ "embed" // the measure
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// timeout bounds everything that a test does with one page.
const timeout = time.Minute

// Main runs the tests and ends the browser, if one was started. It returns the exit status.
func Main(m *testing.M) int {
	defer func() { shared.cancel() }()
	return m.Run()
}

// shared is the browser of this process.
var shared = struct {
	once   sync.Once
	ctx    context.Context
	err    error
	cancel func()
}{cancel: func() {}}

// start starts the browser.
func start() {
	path, err := Find()
	if err != nil {
		shared.err = err
		return
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		// no network but a server of the test's own
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("lang", "en"),
		chromedp.DisableGPU,
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(alloc)
	shared.ctx, shared.cancel = ctx, func() { cancel(); cancelAlloc() }
	if err := chromedp.Do(ctx); err != nil {
		shared.err = fmt.Errorf("browser: %s does not start: %w", path, err)
	}
}

// Options are what a page finds. The zero value is a wide light screen with JavaScript.
type Options struct {
	// Width and Height are those of the window, in pixels; zero: 1280 by 900.
	Width, Height int
	// Dark, Still and Paper emulate a dark system, a system that wants little motion, and paper.
	Dark, Still, Paper bool
	// NoScript switches JavaScript off.
	NoScript bool
}

// Page is one tab.
type Page struct {
	tb  testing.TB
	ctx context.Context

	mu       sync.Mutex
	requests []string
	problems []string
}

// Open opens a page, which closes when the test ends.
func Open(tb testing.TB, url string, o Options) *Page {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs a browser: run without -short")
	}
	shared.once.Do(start)
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	tab, cancel := chromedp.NewContext(shared.ctx)
	tb.Cleanup(cancel)
	p := &Page{tb: tb, ctx: tab}
	if err := chromedp.Listen(tab, p.heard); err != nil {
		tb.Fatal(err)
	}
	var stop context.CancelFunc
	p.ctx, stop = context.WithTimeout(tab, timeout)
	tb.Cleanup(stop)
	if o.Width == 0 {
		o.Width, o.Height = 1280, 900
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: o.NoScript})
	call(p, emulation.SetEmulatedMedia, o.media())
	p.Do(chromedp.EmulateViewport(int64(o.Width), int64(o.Height)), chromedp.Navigate(url))
	return p
}

func (o *Options) media() emulation.SetEmulatedMediaParams {
	feature := func(name, yes, no string, is bool) *emulation.MediaFeature {
		if is {
			return &emulation.MediaFeature{Name: name, Value: yes}
		}
		return &emulation.MediaFeature{Name: name, Value: no}
	}
	m := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		feature("prefers-color-scheme", "dark", "light", o.Dark),
		feature("prefers-reduced-motion", "reduce", "no-preference", o.Still),
	}}
	if o.Paper {
		m.Media = "print"
	}
	return m
}

// call sends one command of the protocol.
func call[P, R any](p *Page, c cdp.Command[P, R], params P) {
	p.tb.Helper()
	if _, err := chromedp.Call(p.ctx, c, params); err != nil {
		p.tb.Fatal(err)
	}
}

// heard takes in what the browser reports. It runs on the goroutine that reads the browser's messages.
func (p *Page) heard(e any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		p.problems = append(p.problems, text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value))
			}
			p.problems = append(p.problems, fmt.Sprintf("console: %s", strings.Join(words, " ")))
		}
	case *log.EventEntryAdded:
		p.problems = append(p.problems, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
	}
}

// Requests are the addresses of everything that was asked for so far, the page itself included.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}

// Problems are the exceptions, and what the console and the browser complained about, so far.
func (p *Page) Problems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.problems...)
}

// Do does something with the page, and fails the test if it cannot.
func (p *Page) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.tb.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.tb.Fatal(err)
	}
}

// Get does something that has a result, and fails the test if it cannot.
func Get[T any](p *Page, a chromedp.Action[T]) T {
	p.tb.Helper()
	v, err := chromedp.Run(p.ctx, a)
	if err != nil {
		p.tb.Fatal(err)
	}
	return v
}

// Eval is the value of an expression of JavaScript. It works although the page's own scripts are switched
// off.
func Eval[T any](p *Page, expression string) T {
	p.tb.Helper()
	return Get(p, chromedp.Evaluate[T](expression))
}

// Picture is what the window shows, as WebP.
func (p *Page) Picture() []byte {
	p.tb.Helper()
	r, err := chromedp.Call(p.ctx, page.CaptureScreenshot,
		page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp})
	if err != nil {
		p.tb.Fatal(err)
	}
	return r.Data
}

// Await waits until an expression of JavaScript is true.
func (p *Page) Await(expression string) {
	p.tb.Helper()
	Get(p, chromedp.Poll[bool](expression))
}

//go:embed contrast.js
var measure string

// leastContrast is what WCAG 2 asks for at level AA.
const leastContrast = 4.5

// text is one text that can be seen, and its contrast with what is behind it.
type text struct {
	Text, Where, Color, Ground string
	Ratio                      float64
}

func (p *Page) texts() []text { return Eval[[]text](p, measure) }

// Contrast fails the test if a text that can be seen has too little contrast with what is behind it. It
// returns how many texts there are.
func (p *Page) Contrast() (texts int) {
	p.tb.Helper()
	all := p.texts()
	for _, x := range all {
		if x.Ratio < leastContrast {
			p.tb.Errorf("too pale: %+v", x)
		}
	}
	return len(all)
}

// Env names the variable with the browser to use, by name or path.
const Env = "SBR_BROWSER"

// candidates are what distributions call it.
var candidates = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Find returns the path of a Chromium. The error is one line with the way out.
func Find() (string, error) {
	if name := os.Getenv(Env); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("browser: %s=%s: %w: correct or unset it", Env, name, err)
		}
		return path, nil
	}
	for _, name := range candidates {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("browser: no Chromium in PATH: run make browser, or set %s", Env)
}
