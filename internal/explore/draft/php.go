package draft

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
)

var php = ecosystem{manifests: []string{"composer.json"}, sources: ".php", read: readPHP}

func readPHP(r *repository, d *Draft) {
	var c struct {
		Name    string            `json:"name"`
		Require map[string]string `json:"require"`
	}
	if r.json("composer.json", &c) {
		d.Once = append(d.Once, "composer install")
		d.dependsOn("composer.json", slices.Sorted(maps.Keys(c.Require)))
	}
	if c.Name != "laravel/laravel" {
		d.name(c.Name)
	}
	switch {
	case r.has("artisan"):
		readLaravel(r, d)
	case r.has("bin/console"):
		d.Run.guess("php -q -S 127.0.0.1:8000 -t public", "bin/console exists, which Symfony has")
		d.Migrate.guess("php bin/console doctrine:migrations:migrate --no-interaction", "bin/console exists, which Symfony has")
		d.Port.guess("8000", "the command names it")
		d.asked = append(d.asked, "DATABASE_URL")
	}
	if front := r.first("public/index.php", "web/index.php", "index.php"); front != "" {
		d.Run.guess("php -q -S 127.0.0.1:8000 -t "+path.Dir(front), "%s exists", front)
	}
	if files := r.match("*.php"); len(files) == 1 {
		d.Run.guess("php -q -S 127.0.0.1:8000 "+files[0], "%s is the only PHP file at the top", files[0])
	}
	d.Port.guess("8000", "the command names it")
}

// laravelKey is a key of 32 bytes for AES-256. It protects only the sessions of a test.
const laravelKey = "oversell: a key for a test only."

func readLaravel(r *repository, d *Draft) {
	d.Run.guess("php artisan serve --no-reload --host=127.0.0.1 --port=8000", "artisan exists, which Laravel has")
	migrate := "php artisan migrate --force"
	if r.has("database/seeders/DatabaseSeeder.php") {
		migrate += " --seed"
	}
	d.Migrate.guess(migrate, "artisan exists, which Laravel has")
	d.Port.guess("8000", "the command names it")
	d.variables = append(d.variables, Variable{Name: "APP_KEY", Value: "base64:" + base64.StdEncoding.EncodeToString([]byte(laravelKey)), Comment: "Laravel needs a key"})
}
