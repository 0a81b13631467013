package draft

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/goccy/go-yaml"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/require"
)

// A layout is a small imitation of a public repository: the files that shop init reads, with
// dependencies, settings and routes. It is a file of testdata/layouts, with a section "-- NAME --" for
// each file.
type layout struct {
	files                []section
	want, lacks, missing []string // lines of the draft, texts that it must not contain, and keys that the owner must fill in
}

type section struct{ name, text string }

// sections divides a text. Text before the first section is a comment.
func sections(text string) (all []section) {
	begin := regexp.MustCompile(`(?m)^-- (\S+) --\n`)
	found := begin.FindAllStringSubmatchIndex(text, -1)
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		all = append(all, section{text[at[2]:at[3]], text[at[1]:end]})
	}
	return all
}

func readLayout(t *testing.T, path string) (l layout) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, s := range sections(string(text)) {
		switch lines := strings.Split(strings.TrimSuffix(s.text, "\n"), "\n"); s.name {
		case "want":
			l.want = lines
		case "lacks":
			l.lacks = lines
		case "missing":
			l.missing = lines
		default:
			l.files = append(l.files, s)
		}
	}
	return l
}

func unpack(t *testing.T, dir string, files []section) {
	t.Helper()
	for _, s := range files {
		file := filepath.Join(dir, s.name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(s.text), 0o600))
	}
}

// inLine matches the lines behind a key of a Result.
var inLine = regexp.MustCompile(` \(lines? [\d, ]+\)$`)

// TestLayouts: the draft for each layout contains the expected values and guesses. Load refuses the
// file only for the values to fill in, and names each with its line.
func TestLayouts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/layouts/*.txt")
	if err != nil || len(paths) < 13 {
		t.Fatalf("%d layouts, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			l := readLayout(t, path)
			dir := t.TempDir()
			unpack(t, dir, l.files)
			r, err := Save(dir, "", false, io.Discard)
			require.NoError(t, err)
			text, err := os.ReadFile(r.Path)
			require.NoError(t, err)
			lines := strings.Split(string(text), "\n")
			for _, lacks := range l.lacks {
				if bytes.Contains(text, []byte(lacks)) {
					t.Errorf("the file has %q", lacks)
				}
			}
			for _, want := range l.want {
				if !slices.Contains(lines, want) {
					t.Errorf("the file lacks %q", want)
				}
			}
			var missing []string
			for _, key := range r.Missing {
				missing = append(missing, inLine.ReplaceAllString(key, ""))
			}
			if !slices.Equal(missing, l.missing) {
				t.Errorf("to fill in: %q; want %q", missing, l.missing)
			}
			_, err = app.Load(r.Path)
			if (err != nil) != (l.missing != nil) {
				t.Errorf("the draft: %v", err)
			}
			for _, key := range r.Missing {
				if !strings.Contains(err.Error(), key) {
					t.Errorf("%v; it does not name %s", err, key)
				}
			}
			for i, line := range lines {
				value, comment, commented := strings.Cut(line, "   # ")
				lines[i] = strings.ReplaceAll(value, app.Placeholder, "x")
				if commented {
					lines[i] += "   # " + comment
				}
			}
			require.NoError(t, os.WriteFile(r.Path, []byte(strings.Join(lines, "\n")), 0o600))
			a, err := app.Load(r.Path)
			if err != nil {
				t.Fatalf("after filling in: %v", err)
			}
			if !slices.Equal(a.Guesses, r.Guesses) || len(a.Guesses) < 2 {
				t.Errorf("guesses %q, printed %q", a.Guesses, r.Guesses)
			}
			if t.Failed() {
				t.Logf("%s", text)
			}
		})
	}
}

// TestRoutes: Read finds a route that looks like a sale, in the notation of each framework.
func TestRoutes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, text, want string }{
		{"Express", "app.js", `app.get('/orders', list); app.post('/orders', (req, res) => { const { productId, email } = req.body })`, `POST /orders {"email":"buyer@example.com","productId":1}`},
		{"a mounted router", "routes/order.routes.js", `router.get('/', list); router.post('/', create)`, "POST /order"},
		{"Fastify", "server.ts", "fastify.post(`/api/checkout`, handler)", "POST /api/checkout"},
		{"NestJS", "src/orders.controller.ts", "@Controller('orders')\nclass C { @Get() all() {} @Post() create() {} @Post(':id/cancel') cancel() {} }", "POST /orders"},
		{"node:http", "server.mjs", `if (url.pathname !== '/buy') return; url.searchParams.get('item')`, "POST /buy?item=1"},
		{"Laravel", "routes/api.php", `Route::post('products/{product}/purchase', [C::class, 'buy']);`, "POST /products/1/purchase"},
		{"Symfony", "src/Controller/C.php", "#[Route('/reserve/{id}', name: 'r', methods: ['POST'])]", "POST /reserve/1"},
		{"Flask", "app.py", "@app.route('/buy/<int:item>', methods=['POST'])\ndef buy(item):\n    request.json['quantity']", `POST /buy/1 {"quantity":1}`},
		{"FastAPI", "orders.py", "router = APIRouter(prefix=\"/orders\")\n@router.post(\"/\")", "POST /orders"},
		{"Django", "shop/urls.py", "path('checkout/<int:pk>/', views.checkout)", "POST /checkout/1/"},
		{"a view of Django", "urls.py", "import json\nurlpatterns = [path('buy', buy)]\ndef buy(request):\n    body = json.loads(request.body)\n    take(body['item_id'], body.get(\"email\"))", `POST /buy {"email":"buyer@example.com","item_id":1}`},
		{"Rails", "config/routes.rb", "  resources :orders, only: [:create]\n", "POST /orders"},
		{"Sinatra", "app.rb", "post '/claim' do\n", "POST /claim"},
		{"Spring", "C.java", "@RequestMapping(\"/api\")\nclass C { @PostMapping(\"/orders\") }", "POST /api/orders"},
		{"Gin", "main.go", "r.POST(\"/vouchers/:id/redeem\", redeem)", "POST /vouchers/1/redeem"},
		{"net/http", "main.go", "mux.HandleFunc(\"POST /buy\", func() { r.FormValue(\"item\") })", "POST /buy?item=1"},
		{"the only POST route", "app.js", `app.get('/codes', list); app.post('/codes/:code/take', take); app.post('/login', f)`, "POST /codes/1/take"},
		{"two other POST routes", "app.js", `app.post('/codes', f); app.post('/names', f)`, ""},
		{"cancel, history and others", "app.js", `app.get('/orders/history', f); app.post('/login', f); app.get('/products', f)`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, err := Read(fstest.MapFS{c.file: {Data: []byte(c.text)}}, "shop")
			require.NoError(t, err)
			got := ""
			if d.Buy != nil {
				body, err := d.Buy.Body()
				require.NoError(t, err)
				got = strings.TrimSpace(d.Buy.Line("") + " " + body)
			}
			if got != c.want {
				t.Errorf("%s; want %s", got, c.want)
			}
		})
	}
}

// TestTables: Read finds the column of the stock in the notation of each schema, and ignores a buyer's
// quantity.
func TestTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, text, update, orders string }{
		{"SQL", "schema.sql", "CREATE TABLE cart_items (quantity INT);\nCREATE TABLE IF NOT EXISTS `products` (`id` INT, `quantity` INT NOT NULL);\nCREATE TABLE `order` (id INT);", "UPDATE products SET quantity = 1", "DELETE FROM `order`"},
		{"Prisma", "prisma/schema.prisma", "model Product {\n  id Int @id\n  stock Int\n}\nmodel Order {\n  id Int @id\n}\n", "UPDATE `Product` SET stock = 1", "DELETE FROM `Order`"},
		{"Knex", "migrations/1.js", "createTable('events', t => { t.integer('available_seats') })\ncreateTable('bookings', t => {})", "UPDATE events SET available_seats = 1", "DELETE FROM bookings"},
		{"Sequelize", "models/p.js", "sequelize.define('product', { stock: { type: DataTypes.INTEGER } })", "UPDATE products SET stock = 1", ""},
		{"Django", "shop/models.py", "class Item(models.Model):\n    stock = models.PositiveIntegerField()\nclass Order(models.Model):\n    pass\n", "UPDATE shop_item SET stock = 1", "DELETE FROM shop_order"},
		{"SQLAlchemy", "models.py", "__tablename__ = 'products'\n    stock = Column(Integer)\n", "UPDATE products SET stock = 1", ""},
		{"JPA", "P.java", "@Table(name = \"coupon\")\nclass C { private int remaining; }", "UPDATE coupon SET remaining = 1", ""},
		{"TypeORM", "booking.ts", "@Entity()\nexport class TicketType { @Column('int') availableSeats: number }\n@Entity()\n@Index(['a'])\nexport class Booking {}", "UPDATE ticket_type SET `availableSeats` = 1", "DELETE FROM booking"},
		{"JPA without a name", "P.java", "@Entity\n@Getter\npublic class ShopOrder {}\n", "", "DELETE FROM shop_order"},
		{"a total", "schema.sql", "CREATE TABLE tickets (total_stock INT, stock INT)", "UPDATE tickets SET stock = 1", "DELETE FROM tickets"},
		{"an amount of money", "schema.sql", "CREATE TABLE transfers (amount INT)", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, err := Read(fstest.MapFS{c.file: {Data: []byte(c.text)}}, "shop")
			require.NoError(t, err)
			update, orders := "", ""
			if d.Stock != nil {
				update = rendering{d}.Update()
			}
			if d.Orders.Text != "" {
				orders = rendering{d}.Delete()
			}
			if update != c.update || orders != c.orders {
				t.Errorf("%q, %q; want %q, %q", update, orders, c.update, c.orders)
			}
		})
	}
}

// TestOwnSecretsStay: the draft copies no value of a file that belongs to one developer.
func TestOwnSecretsStay(t *testing.T) {
	t.Parallel()
	d, err := Read(fstest.MapFS{
		"package.json": {Data: []byte(`{"dependencies": {"mysql2": "3"}}`)},
		".env":         {Data: []byte("API_KEY=s3cret\nDB_PASSWORD=hunter2\nPORT=4000\nDATABASE_URL=mysql://me:hunter2@prod/shop\n")},
	}, "shop")
	require.NoError(t, err)
	text, err := d.YAML()
	require.NoError(t, err)
	for _, secret := range []string{"s3cret", "hunter2", "prod"} {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the draft contains %q:\n%s", secret, text)
		}
	}
	for _, want := range []string{`DB_PASSWORD: ""`, "DATABASE_URL: mysql://root@127.0.0.1:3306/shop", "http://127.0.0.1:4000/"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the draft lacks %q:\n%s", want, text)
		}
	}
}

// TestOwnSecretsInQuery: the draft does not copy the parameters of a URL that give access to a server.
func TestOwnSecretsInQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		k         *kind
		url, want string
	}{
		{mysql, "jdbc:mysql://prod/shop?user=me&password=hunter2&serverTimezone=UTC", "jdbc:mysql://127.0.0.1:3306/shop?serverTimezone=UTC&user=root"},
		{postgres, "postgresql://prod/shop?user=me&password=hunter2&sslkey=/home/me/key.pem", "postgresql://shop@127.0.0.1:5432/shop?sslmode=disable&user=shop"},
		{redis, "redis://prod:6379/3?password=hunter2", "redis://127.0.0.1:6379/0"},
	} {
		if got := c.k.private(c.url); got != c.want {
			t.Errorf("%s becomes %s, want %s", c.url, got, c.want)
		}
	}
}

// TestWords: ofWord recognizes the names of a database in each language.
func TestWords(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]*kind{
		"mysql2": mysql, "mariadb": mysql, "trilogy": mysql,
		"pg": postgres, "pgsql": postgres, "postgresql": postgres, "postgis": postgres,
		"valkey": redis, "sqlite": nil,
	} {
		if got := ofWord(word); got != want {
			t.Errorf("%s is %+v, want %+v", word, got, want)
		}
	}
}

// TestNamesStayInComments: a name in the repository cannot add a line to oversell.yaml.
func TestNamesStayInComments(t *testing.T) {
	t.Parallel()
	for _, d := range []*Draft{
		{Name: "shop", Found: []string{"a\nmigrate: id #.php"}},
		{Name: "shop", Buy: &Route{Method: "POST", Path: "/buy\nmigrate: id #"}},
	} {
		text, err := d.YAML()
		require.NoError(t, err)
		if bytes.Contains(text, []byte("\nmigrate:")) {
			t.Errorf("the draft has a line of the repository:\n%s", text)
		}
	}
}

// TestLinksStayInside: Read does not follow a link out of the repository.
func TestLinksStayInside(t *testing.T) {
	t.Parallel()
	outside, dir := filepath.Join(t.TempDir(), "env"), t.TempDir()
	require.NoError(t, os.WriteFile(outside, []byte("GREETING=hello\n"), 0o600))
	if err := os.Symlink(outside, filepath.Join(dir, ".env.example")); err != nil {
		t.Skip(err)
	}
	var stdout bytes.Buffer
	if _, err := Save(dir, "-", false, &stdout); err != nil || strings.Contains(stdout.String(), "GREETING") {
		t.Errorf("%v, standard output: %s", err, stdout.String())
	}
}

// TestSaveRefused: Save reports each mistake in one line, and then changes no file.
func TestSaveRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, FileName)
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	for _, c := range []struct{ name, dir, path, says string }{
		{"a file exists", dir, "", "exists and was left unchanged; add --force to replace it"},
		{"no such folder", filepath.Join(dir, "none"), "", "no such file or directory"},
		{"a file as folder", file, "", "is not a folder; name the folder of your program"},
		{"another folder", dir, filepath.Join(t.TempDir(), FileName), "--output must be a file in " + dir},
		{"no folder for the output", dir, filepath.Join(dir, "none", FileName), "--output: "},
		{"a folder as output", filepath.Dir(dir), dir, "is a folder; name a file with --output"},
	} {
		_, err := Save(c.dir, c.path, false, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q", c.name, err, c.says)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if _, err := Save(dir, "", true, io.Discard); err != nil {
		t.Errorf("with force: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || !bytes.Contains(text, []byte("run: FILL_IN")) {
		t.Errorf("with force: the file is %q, %v", text, err)
	}
}

// TestStandardOutput: for "-", Save writes the same text to standard output, and no file.
func TestStandardOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unpack(t, dir, readLayout(t, "testdata/layouts/node-express-sequelize-postgresql.txt").files)
	var stdout bytes.Buffer
	if _, err := Save(dir, "-", false, &stdout); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, FileName)); err == nil || !strings.Contains(stdout.String(), "run: node server.js") {
		t.Errorf("the file: %v; standard output: %s", err, stdout.String())
	}
}

// TestSeveralPrograms: for a repository with several programs, Save names their folders.
func TestSeveralPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unpack(t, dir, []section{{"api/go.mod", "module api\n"}, {"worker/package.json", "{}"}, {"frontend/package.json", "{}"}})
	r, err := Save(dir, "", false, io.Discard)
	if err != nil || !slices.Equal(r.Below, []string{"api", "worker"}) {
		t.Errorf("%q, %v", r.Below, err)
	}
}

// TestProgramBelow: Read finds the only program of a repository in a folder, even if its manifest is
// deeper.
func TestProgramBelow(t *testing.T) {
	t.Parallel()
	d, err := Read(fstest.MapFS{
		"backend/manage.py":             {},
		"backend/requirements/base.txt": {Data: []byte("mysqlclient\n")},
	}, "shop")
	require.NoError(t, err)
	if !slices.Equal(d.Found, []string{"backend/manage.py", "backend/requirements/base.txt"}) || !strings.HasPrefix(d.Run.Text, "cd backend && python3 manage.py runserver") {
		t.Errorf("found %q, run %q", d.Found, d.Run.Text)
	}
}

// TestBrokenManifest: a folder whose manifest is a link to a missing file has no program.
func TestBrokenManifest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "api"), 0o750))
	if err := os.Symlink("missing", filepath.Join(dir, "api", "go.mod")); err != nil {
		t.Skip(err)
	}
	r, err := Save(dir, "-", false, io.Discard)
	if err != nil || r.From != nil || r.Below != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestAnyCommand: a command with any characters stays the same after writing and reading the file.
func TestAnyCommand(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("ab \t:#'\"\\{}[]&*!|>%@`-?,.\n$~=0x1é\u2028\x01\ufeff")
	for range 200 {
		var text []rune
		for range 1 + random.IntN(12) {
			text = append(text, alphabet[random.IntN(len(alphabet))])
		}
		d := &Draft{Name: "shop", Run: Value{Text: string(text), Because: string(text)}, Env: []Variable{{Name: "A", Value: string(text), Comment: string(text)}}}
		file, err := d.YAML()
		require.NoError(t, err)
		var read struct {
			Run string            `yaml:"run"`
			Env map[string]string `yaml:"env"`
		}
		if err := yaml.Unmarshal(file, &read); err != nil || read.Run != string(text) || read.Env["A"] != string(text) {
			t.Errorf("%q reads back as %q and %q, %v", string(text), read.Run, read.Env["A"], err)
		}
	}
}

// FuzzRead: for any content, the draft is valid YAML, and Load accepts it or refuses it in one line.
func FuzzRead(f *testing.F) {
	f.Add("package.json", `{"scripts": {"start": "a # b: \"c\""}}`)
	f.Add("schema.sql", "CREATE TABLE `a:b` (stock int)")
	f.Add(".env.example", "DATABASE_URL=postgres://a:b\nX='#'\n")
	f.Add("go.mod", "module \x00")
	f.Fuzz(func(t *testing.T, name, content string) {
		d, err := Read(fstest.MapFS{filepath.Clean("/" + name)[1:]: {Data: []byte(content)}}, "shop")
		if err != nil {
			t.Skip(err) // fstest refuses the name
		}
		text, err := d.YAML()
		require.NoError(t, err)
		if _, _, err := app.Marks(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}
