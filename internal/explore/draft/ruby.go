package draft

import "regexp"

var ruby = ecosystem{manifests: []string{"Gemfile"}, sources: ".rb", read: readRuby}

var (
	gem     = regexp.MustCompile(`(?m)^\s*gem\s+['"]([\w-]+)['"]`)
	adapter = regexp.MustCompile(`(?m)^\s*adapter:\s*['"]?(?:<%=.*?)?(mysql2|trilogy|postgresql|postgis)`)
	hasSeed = regexp.MustCompile(`(?m)^\s*[^#\s]`)
)

func readRuby(r *repository, d *Draft) {
	gems := groups(gem, r.text("Gemfile"))
	if gems != nil {
		d.Once = append(d.Once, "bundle install")
	}
	d.dependsOn("Gemfile", gems)
	if m := adapter.FindStringSubmatch(r.text("config/database.yml")); m != nil {
		d.uses(ofWord(m[1]), strong, "config/database.yml has adapter %s", m[1])
		d.asked = append(d.asked, "DATABASE_URL") // Rails prefers this variable to config/database.yml
		d.urls[mysql] = m[1] + "://root@127.0.0.1:3306/shop"
	}
	readProcfile(r, d)
	if r.has("config/application.rb") {
		rails := "bin/rails"
		if !r.has(rails) {
			rails = "bundle exec rails"
		}
		d.Run.guess(rails+" server -b 127.0.0.1 -p 3000", "config/application.rb exists, which Rails has")
		migrate := rails + " db:migrate"
		if hasSeed.MatchString(r.text("db/seeds.rb")) {
			migrate += " db:seed"
		}
		d.Migrate.guess(migrate, "config/application.rb exists, which Rails has")
		d.Port.guess("3000", "it is the port of Rails")
		d.Slow = true
	}
	if r.has("config.ru") {
		d.Run.guess("bundle exec rackup -o 127.0.0.1 -p 9292", "config.ru exists")
		d.Port.guess("9292", "it is the port of rackup")
	}
	if files := r.match("*.rb"); len(files) == 1 {
		d.Run.guess("ruby "+files[0], "%s is the only Ruby file at the top", files[0])
	}
}
