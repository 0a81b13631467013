package draft

// A layout is the files of a public repository that shop init reads, re-created small: names of files,
// dependencies, settings and routes.
type layout struct {
	repository string // of which these are the facts
	files      string // sections that begin with "-- NAME --"
	want       []string
	lacks      []string
	missing    []string // keys that the owner must fill in
}

var layouts = []layout{
	{
		repository: "github.com/bezkoder/node-express-sequelize-postgresql", // Express, Sequelize, pg; no start script
		files: `
-- package.json --
{"name": "nodejs-express-sequelize-postgresql", "main": "server.js", "scripts": {"test": "exit 1"},
 "dependencies": {"cors": "^2.8.5", "express": "^4.17.1", "pg": "^8.6.0", "pg-hstore": "^2.3.4", "sequelize": "^5.21.3"}}
-- server.js --
require("./app/routes/turorial.routes")(app);
const PORT = process.env.PORT || 8080;
app.listen(PORT)
-- app/config/db.config.js --
module.exports = { HOST: "localhost", USER: "postgres", DB: "testdb", dialect: "postgres" };
-- app/models/tutorial.model.js --
sequelize.define("tutorial", { title: { type: Sequelize.STRING } });
-- app/routes/turorial.routes.js --
router.post("/", tutorials.create);
app.use('/api/tutorials', router);
`,
		want: []string{
			"# Once before: npm ci",
			`run: node server.js   # GUESS: because package.json has "main": "server.js"`,
			"postgres: 127.0.0.1:5432   # GUESS: because app/config/db.config.js has postgres",
			"buyer: POST http://127.0.0.1:8080/FILL_IN   # FILL_IN: the request that buys one unit",
		},
		missing: []string{"buyer", "reset.sql", "never"},
	},
	{
		repository: "github.com/notiz-dev/nestjs-prisma-starter", // NestJS and Prisma, GraphQL only
		files: `
-- package.json --
{"name": "nestjs-prisma-client-starter",
 "scripts": {"build": "nest build", "start": "nest start", "start:prod": "node dist/main", "migrate:deploy": "npx prisma migrate deploy --preview-feature", "seed": "ts-node prisma/seed.ts"},
 "dependencies": {"@nestjs/common": "7.1.2", "@nestjs/core": "7.1.2", "@nestjs/graphql": "7.3.4", "@prisma/client": "2.16.1"}}
-- .env.example --
POSTGRES_USER=prisma
POSTGRES_PASSWORD=topsecret
POSTGRES_DB=blog
# Nest run in docker, change host to database container name
# DB_HOST=postgres
DB_HOST=localhost
DB_PORT=5432
DB_SCHEMA=blog
DATABASE_URL=postgresql://${POSTGRES_USER}:${POSTGRES_PASSWORD}@${DB_HOST}:${DB_PORT}/${POSTGRES_DB}?schema=${DB_SCHEMA}&sslmode=prefer
PORT=3000
JWT_ACCESS_SECRET=nestjsPrismaAccessSecret
-- docker-compose.yml --
version: '3.7'
services:
  nest-api:
    container_name: nest-api
    build: { context: ., dockerfile: Dockerfile }
    ports: [ "3000:3000" ]
    depends_on: [ postgres ]
  postgres:
    image: postgres:13
-- prisma/schema.prisma --
datasource db {
  provider = "postgresql"
  url      = env("DATABASE_URL")
}
model User { id String @id }
-- prisma/migrations/20201213214806_init/migration.sql --
CREATE TABLE "User" ("id" TEXT NOT NULL);
-- src/app.controller.ts --
@Controller()
export class AppController { @Get() getHello() {} @Get('hello/:name') getHelloName() {} }
`,
		want: []string{
			"# Once before: npm ci", "# Once before: npm run build",
			`run: node dist/main   # GUESS: because package.json has "start:prod": "node dist/main"`,
			"  DATABASE_URL: postgresql://shop@127.0.0.1:5432/shop?sslmode=disable",
			"  DB_HOST: 127.0.0.1",
			`  POSTGRES_PASSWORD: ""`,
			`  PORT: "3000"   # as in .env.example`,
			"  JWT_ACCESS_SECRET: nestjsPrismaAccessSecret   # as in .env.example",
			`postgres: 127.0.0.1:5432   # GUESS: because prisma/schema.prisma has provider "postgresql"`,
			`migrate: npm run migrate:deploy   # GUESS: because package.json has "migrate:deploy": "npx prisma migrate deploy --preview-feature"`,
		},
		missing: []string{"buyer", "reset.sql", "never"},
	},
	{
		repository: "github.com/abel291/ticket-booking-laravel-react", // Laravel with React pages
		files: `
-- composer.json --
{"name": "laravel/laravel", "require": {"php": "^8.1", "laravel/framework": "^10.0"}}
-- package.json --
{"private": true, "scripts": {"dev": "vite", "build": "vite build"}, "dependencies": {"react": "^18.2.0"}}
-- artisan --
#!/usr/bin/env php
-- .env.example --
APP_NAME=Laravel
APP_KEY=
DB_CONNECTION=mysql
DB_HOST=127.0.0.1
DB_PORT=3306
DB_DATABASE=laravel
DB_USERNAME=root
DB_PASSWORD=
MAIL_MAILER=smtp
-- database/seeders/DatabaseSeeder.php --
class DatabaseSeeder extends Seeder {}
-- database/migrations/2022_03_08_090146_create_event_promotion_table.php --
Schema::create('event_promotion', function (Blueprint $table) {
    $table->unsignedInteger('remaining')->nullable();
});
-- database/migrations/2022_03_09_074226_create_orders_table.php --
Schema::create('orders', function (Blueprint $table) { $table->id(); $table->decimal('total', 12, 2); });
-- routes/web.php --
Route::get('/checkout/{session}', [CheckoutController::class, 'create']);
Route::post('/order-cancel', [OrderController::class, 'cancel']);
`,
		want: []string{
			"# Once before: composer install",
			"run: php artisan serve --no-reload --host=127.0.0.1 --port=8000   # GUESS: because artisan exists, which Laravel has",
			"  DB_DATABASE: shop",
			"  DB_CONNECTION: mysql   # as in .env.example",
			"mysql: 127.0.0.1:3306   # GUESS: because .env.example has DB_CONNECTION=mysql",
			"migrate: php artisan migrate --force --seed   # GUESS: because artisan exists, which Laravel has",
			"buyer: GET http://127.0.0.1:8000/checkout/1   # GUESS: because routes/web.php has this route",
			"    - UPDATE event_promotion SET remaining = 1   # GUESS: because database/migrations/2022_03_08_090146_create_event_promotion_table.php has this column",
			"    - DELETE FROM orders   # GUESS: because database/migrations/2022_03_09_074226_create_orders_table.php has this table",
		},
		lacks: []string{"MAIL_MAILER"},
	},
	{
		repository: "github.com/xeusteerapat/fastify-prisma-mysql", // Fastify, Prisma, yarn
		files: `
-- package.json --
{"name": "fastify-prisma-mysql", "scripts": {"start": "tsc && node dist/src/app.js"}, "dependencies": {"@prisma/client": "^4.3.1", "fastify": "^4.5.3"}}
-- yarn.lock --
-- prisma/schema.prisma --
datasource db {
  provider = "mysql"
  url      = env("DATABASE_URL")
}
-- prisma/migrations/20220911_init/migration.sql --
CREATE TABLE ` + "`User` (`id` INTEGER NOT NULL" + `);
-- src/server.ts --
server.get('/healthcheck', async () => ({ status: 'OK' }));
-- src/app.ts --
await server.listen({ port: 3001, host: '0.0.0.0' });
`,
		want: []string{
			"# Once before: yarn install --frozen-lockfile",
			`run: yarn run start   # GUESS: because package.json has "start": "tsc && node dist/src/app.js"`,
			"ready: http://127.0.0.1:3001/healthcheck   # GUESS: because src/server.ts has this path",
			"  DATABASE_URL: mysql://root@127.0.0.1:3306/shop",
			"migrate: npx prisma migrate deploy   # GUESS: because prisma/migrations exists",
		},
		missing: []string{"buyer", "reset.sql", "never"},
	},
	{
		repository: "github.com/Sylius/Sylius-Standard", // Symfony; the shop is a library
		files: `
-- composer.json --
{"name": "sylius/sylius-standard", "require": {"php": "^8.3", "sylius/sylius": "^2.2.6", "symfony/dotenv": "^7.4.11", "symfony/runtime": "^7.4.13"}}
-- bin/console --
#!/usr/bin/env php
-- public/index.php --
<?php return fn () => new Kernel();
-- .env --
APP_ENV=dev
APP_SECRET=EDITME
# DATABASE_URL="postgresql://app:!ChangeMe!@127.0.0.1:5432/app?serverVersion=16&charset=utf8"
DATABASE_URL=mysql://root@127.0.0.1/sylius_%kernel.environment%?serverVersion=8&charset=utf8mb4
MESSENGER_TRANSPORT_DSN=doctrine://default
`,
		want: []string{
			"name: sylius-standard",
			"run: php -q -S 127.0.0.1:8000 -t public   # GUESS: because bin/console exists, which Symfony has",
			"  DATABASE_URL: mysql://root@127.0.0.1:3306/shop?charset=utf8mb4&serverVersion=8",
			"mysql: 127.0.0.1:3306   # GUESS: because .env has DATABASE_URL",
			"migrate: php bin/console doctrine:migrations:migrate --no-interaction   # GUESS: because bin/console exists, which Symfony has",
		},
		missing: []string{"buyer", "reset.sql", "never"},
	},
	{
		repository: "github.com/testdrivenio/django-on-docker", // Django in a folder, compose at the top
		files: `
-- docker-compose.yml --
services:
  web:
    build: ./app
    command: python manage.py runserver 0.0.0.0:8000
    ports: [ "8000:8000" ]
    environment:
      - SECRET_KEY=please_change_me
      - SQL_ENGINE=django.db.backends.postgresql
      - SQL_DATABASE=postgres
      - SQL_USER=postgres
      - SQL_PASSWORD=postgres
      - SQL_HOST=db
      - SQL_PORT=5432
  db:
    image: postgres:15
-- app/manage.py --
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hello_django.settings")
-- app/requirements.txt --
Django==4.2.3
gunicorn==21.2.0
psycopg2-binary==2.9.6
-- app/hello_django/settings.py --
SECRET_KEY = os.environ.get("SECRET_KEY")
DATABASES = {"default": {"ENGINE": os.environ.get("SQL_ENGINE", "django.db.backends.sqlite3"), "HOST": os.environ.get("SQL_HOST", "localhost")}}
-- app/hello_django/urls.py --
urlpatterns = [path("", image_upload, name="upload"), path("admin/", admin.site.urls)]
`,
		want: []string{
			"# Once before: cd app && pip install -r requirements.txt",
			"run: cd app && python3 manage.py runserver --noreload 127.0.0.1:8000   # GUESS: because manage.py exists",
			"  SQL_HOST: 127.0.0.1", "  SQL_DATABASE: shop",
			"  SQL_ENGINE: django.db.backends.postgresql   # as in docker-compose.yml",
			"  SECRET_KEY: please_change_me   # as in docker-compose.yml",
			"postgres: 127.0.0.1:5432   # GUESS: because docker-compose.yml has SQL_ENGINE=django.db.backends.postgresql",
			"migrate: cd app && python3 manage.py migrate --noinput   # GUESS: because manage.py exists",
		},
		missing: []string{"buyer", "reset.sql", "never"},
	},
	{
		repository: "github.com/fastapi/full-stack-fastapi-template", // FastAPI, SQLModel, Alembic, uv workspace
		files: `
-- pyproject.toml --
[tool.uv.workspace]
members = ["backend"]
-- uv.lock --
version = 1
-- compose.yml --
services:
  db:
    image: postgres:18
  backend:
    build: { context: . }
    environment:
      - DATABASE_URL=postgresql+psycopg://postgres:${POSTGRES_PASSWORD?Variable not set}@db:5432/app
-- backend/pyproject.toml --
[project]
name = "app"
dependencies = ["fastapi[standard]<1.0.0,>=0.114.2", "alembic<2.0.0,>=1.12.1", "psycopg[binary]<4.0.0,>=3.1.13", "sqlmodel<1.0.0,>=0.0.21"]
-- backend/alembic.ini --
[alembic]
script_location = app/alembic
-- backend/app/__init__.py --
-- backend/app/main.py --
from fastapi import FastAPI
from app.api.main import api_router
app = FastAPI(title="x")
-- backend/app/api/routes/utils.py --
router = APIRouter(prefix="/utils", tags=["utils"])
@router.get("/health-check/")
-- backend/app/api/routes/items.py --
router = APIRouter(prefix="/items", tags=["items"])
@router.post("/")
`,
		want: []string{
			"# Once before: uv sync",
			"run: uv run uvicorn app.main:app --app-dir backend --host 127.0.0.1 --port 8000   # GUESS: because backend/app/main.py has app = FastAPI(",
			"  DATABASE_URL: postgresql+psycopg://shop@127.0.0.1:5432/shop",
			"postgres: 127.0.0.1:5432   # GUESS: because compose.yml has the image postgres:18",
			"migrate: cd backend && uv run alembic upgrade head   # GUESS: because backend/alembic.ini exists",
		},
		missing: []string{"buyer", "reset.sql", "never"},
	},
	{
		repository: "github.com/gothinkster/flask-realworld-example-app", // Flask, Flask-Migrate, requirements/*.txt, Procfile
		files: `
-- Procfile --
web: gunicorn conduit.app:create_app\(\) -b 0.0.0.0:$PORT -w 3
-- requirements/prod.txt --
SQLAlchemy==1.1.9
Flask_SQLAlchemy==2.2
Flask==0.12.1
psycopg2==2.6.2
Flask-Migrate==2.0.3
gunicorn>=19.1.1
-- autoapp.py --
from conduit.app import create_app
app = create_app(CONFIG)
-- conduit/app.py --
def create_app(config_object=ProdConfig):
-- conduit/settings.py --
    SECRET_KEY = os.environ.get('CONDUIT_SECRET', 'secret-key')
    SQLALCHEMY_DATABASE_URI = 'postgresql://localhost/example'
-- migrations/env.py --
from alembic import context
-- migrations/versions/fbe37d815466_.py --
op.create_table('article', sa.Column('id', sa.Integer(), nullable=False))
-- conduit/articles/views.py --
@blueprint.route('/api/articles', methods=('POST',))
`,
		want: []string{
			`run: gunicorn conduit.app:create_app\(\) -b 0.0.0.0:$PORT -w 3   # GUESS: because Procfile has web`,
			`  PORT: "5000"`,
			"postgres: 127.0.0.1:5432   # GUESS: because requirements/prod.txt depends on psycopg2",
			"migrate: flask --app autoapp db upgrade   # GUESS: because migrations/env.py exists",
		},
		missing: []string{"buyer", "reset.sql", "never"},
	},
	{
		repository: "github.com/spree/spree_starter", // Rails; the shop is a gem, its tables are in db/schema.rb
		files: `
-- Gemfile --
source 'https://rubygems.org'
gem 'rails', '~> 8.0'
gem "pg", "~> 1.5"
gem "puma", ">= 5.0"
gem 'sidekiq'
gem 'spree', '~> 5.0'
-- package.json --
{"name": "app", "private": true, "dependencies": {"esbuild": "^0.25"}}
-- Procfile --
release: bin/rails db:migrate
web: bundle exec puma -C config/puma.rb
-- config/application.rb --
module SpreeStarter; end
-- config/puma.rb --
port ENV.fetch("PORT", 3000)
-- config/database.yml --
default: &default
  adapter: postgresql
  host: <%= ENV['DB_HOST'] %>
production:
  url: <%= ENV['DATABASE_URL'] %>
-- docker-compose.yaml --
services:
  postgres: { image: "postgres:17-alpine" }
  redis: { image: "redis:7-alpine" }
-- config/initializers/sidekiq.rb --
config.redis = { url: ENV['REDIS_URL'] }
-- db/schema.rb --
create_table "spree_adjustments", force: :cascade do |t|
  t.decimal "amount", precision: 10, scale: 2
end
create_table "spree_orders", force: :cascade do |t|
end
create_table "spree_stock_items", force: :cascade do |t|
  t.integer "count_on_hand", default: 0, null: false
end
`,
		want: []string{
			"# Once before: bundle install",
			"run: bundle exec puma -C config/puma.rb   # GUESS: because Procfile has web",
			"ready-within: 2m",
			"  DATABASE_URL: postgresql://shop@127.0.0.1:5432/shop?sslmode=disable",
			"  REDIS_URL: redis://127.0.0.1:6379/0", "  DB_HOST: 127.0.0.1",
			"postgres: 127.0.0.1:5432   # GUESS: because config/database.yml has adapter postgresql",
			"redis: 127.0.0.1:6379   # GUESS: because docker-compose.yaml has the image redis:7-alpine",
			"migrate: bin/rails db:migrate   # GUESS: because Procfile has release",
			"buyer: POST http://127.0.0.1:3000/FILL_IN   # FILL_IN: the request that buys one unit",
			"    - UPDATE spree_stock_items SET count_on_hand = 1   # GUESS: because db/schema.rb has this column",
			"    - DELETE FROM spree_orders   # GUESS: because db/schema.rb has this table",
		},
		missing: []string{"buyer"},
	},
	{
		repository: "github.com/weiting1229/seckill-ticketing", // Spring Boot with Flyway, in a folder; pages in another
		files: `
-- .env.example --
POSTGRES_DB=seckill
POSTGRES_USER=seckill
POSTGRES_PASSWORD=change-me-postgres
REDIS_PASSWORD=change-me-redis
JWT_SECRET=change-me-generate-a-random-256-bit-secret
-- frontend/package.json --
{"name": "frontend", "scripts": {"dev": "vite"}}
-- backend/mvnw --
#!/bin/sh
-- backend/pom.xml --
<project><parent><artifactId>spring-boot-starter-parent</artifactId></parent><artifactId>seckill-backend</artifactId>
<dependencies>
<dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-actuator</artifactId></dependency>
<dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-data-redis</artifactId></dependency>
<dependency><groupId>org.flywaydb</groupId><artifactId>flyway-database-postgresql</artifactId></dependency>
<dependency><groupId>org.postgresql</groupId><artifactId>postgresql</artifactId></dependency>
</dependencies></project>
-- backend/src/main/resources/application.yml --
spring:
  datasource:
    url: ${DB_URL:jdbc:postgresql://localhost:5432/seckill}
    username: ${DB_USERNAME:seckill}
  data:
    redis:
      host: ${REDIS_HOST:localhost}
-- backend/src/main/resources/db/migration/V1__init.sql --
CREATE TABLE ticket_types (
    id              BIGINT PRIMARY KEY,
    total_stock     INT           NOT NULL CHECK (total_stock >= 0),
    stock_remaining INT           NOT NULL CHECK (stock_remaining >= 0),  -- never oversold
    version         INT
);
CREATE TABLE orders (id BIGINT PRIMARY KEY);
-- backend/src/main/java/com/seckill/seckill/SeckillController.java --
@RestController
@RequestMapping("/api/v1/seckill")
public class SeckillController {
    @PostMapping("/token")
    @PostMapping("/purchase")
}
-- backend/src/main/java/com/seckill/order/OrderController.java --
@RequestMapping("/api/v1/orders")
public class OrderController { @PostMapping("/{id}/pay") }
`,
		want: []string{
			"name: seckill-backend",
			"run: cd backend && ./mvnw -q spring-boot:run   # GUESS: because pom.xml depends on Spring Boot",
			"ready: http://127.0.0.1:8080/actuator/health   # GUESS: because pom.xml depends on spring-boot-starter-actuator",
			"ready-within: 2m",
			"  SPRING_DATASOURCE_URL: jdbc:postgresql://127.0.0.1:5432/shop",
			"  DB_USERNAME: shop", "  REDIS_HOST: 127.0.0.1",
			"  JWT_SECRET: change-me-generate-a-random-256-bit-secret   # as in .env.example",
			"postgres: 127.0.0.1:5432   # GUESS: because src/main/resources/application.yml has jdbc:postgresql",
			"redis: 127.0.0.1:6379   # GUESS: because pom.xml depends on spring-boot-starter-data-redis",
			"buyer: POST http://127.0.0.1:8080/api/v1/seckill/purchase   # GUESS: because backend/src/main/java/com/seckill/seckill/SeckillController.java has this route",
			"    - UPDATE ticket_types SET stock_remaining = 1   # GUESS: because backend/src/main/resources/db/migration/V1__init.sql has this column",
			"# schema: schema.sql    # a file or folder of SQL that creates the tables, unless the program does so when it starts",
		},
	},
	{
		repository: "github.com/techschool/simplebank", // Gin, pgx, golang-migrate, app.env
		files: `
-- go.mod --
module github.com/techschool/simplebank

go 1.21

require (
	github.com/gin-gonic/gin v1.9.1
	github.com/jackc/pgx/v5 v5.4.2
	github.com/golang-migrate/migrate/v4 v4.16.2
)
-- main.go --
package main

func main() {
}
-- app.env --
ENVIRONMENT=development
DB_SOURCE=postgresql://root:secret@localhost:5432/simple_bank?sslmode=disable
HTTP_SERVER_ADDRESS=0.0.0.0:8080
REDIS_ADDRESS=0.0.0.0:6379
-- db/migration/000001_init_schema.up.sql --
CREATE TABLE "accounts" ("id" bigserial PRIMARY KEY, "balance" bigint NOT NULL);
CREATE TABLE "entries" ("id" bigserial PRIMARY KEY, "amount" bigint NOT NULL);
-- db/migration/000001_init_schema.down.sql --
DROP TABLE "accounts";
-- db/migration/000002_add_users.up.sql --
CREATE TABLE "users" ("username" varchar PRIMARY KEY);
-- api/server.go --
	router.POST("/accounts", server.createAccount)
	router.POST("/transfers", server.createTransfer)
`,
		want: []string{
			"# Once before: go build -o oversell-program .",
			"name: simplebank",
			"run: ./oversell-program   # GUESS: because main.go has func main",
			"  DB_SOURCE: postgresql://shop@127.0.0.1:5432/shop?sslmode=disable",
			"postgres: 127.0.0.1:5432   # GUESS: because app.env has DB_SOURCE",
			"schema: db/migration   # GUESS: because db/migration has SQL with CREATE TABLE",
			"buyer: POST http://127.0.0.1:8080/FILL_IN   # FILL_IN: the request that buys one unit",
		},
		missing: []string{"buyer", "reset.sql", "never"},
	},
	{
		repository: "github.com/rogerBridge/go-seckill-api", // Go, MySQL and Redis; the program is in cmd/
		files: `
-- go.mod --
module go-seckill

require (
	github.com/go-sql-driver/mysql v1.5.0
	github.com/gomodule/redigo v2.0.0+incompatible
)
-- cmd/go-seckill/main.go --
package main

func main() {
	fasthttp.ListenAndServe("0.0.0.0:4000", handler)
}
-- cmd/pressure/main.go --
package main

func main() {
}
-- deploy/mysql/initScripts/goods.sql --
CREATE TABLE ` + "`goods` (`id` int NOT NULL, `inventory` int NOT NULL" + `);
-- deploy/mysql/initScripts/orders.sql --
CREATE TABLE ` + "`orders` (`id` int NOT NULL" + `);
`,
		want: []string{
			"# Once before: go build -o oversell-program ./cmd/go-seckill",
			"run: ./oversell-program   # GUESS: because cmd/go-seckill/main.go has func main",
			"mysql: 127.0.0.1:3306   # GUESS: because go.mod depends on github.com/go-sql-driver/mysql",
			"redis: 127.0.0.1:6379   # GUESS: because go.mod depends on github.com/gomodule/redigo",
			"schema: deploy/mysql/initScripts   # GUESS: because deploy/mysql/initScripts has SQL with CREATE TABLE",
			"buyer: POST http://127.0.0.1:4000/FILL_IN   # FILL_IN: the request that buys one unit",
			"    - UPDATE goods SET inventory = 1   # GUESS: because deploy/mysql/initScripts/goods.sql has this column",
			"  redis: flushdb",
		},
		missing: []string{"buyer"},
	},
	{
		repository: "github.com/spring-projects/spring-petclinic", // Spring Boot with a profile for each database
		files: `
-- mvnw --
#!/bin/sh
-- pom.xml --
<project><parent><artifactId>spring-boot-starter-parent</artifactId></parent><artifactId>spring-petclinic</artifactId><dependencies>
<dependency><artifactId>spring-boot-starter-actuator</artifactId></dependency>
<dependency><artifactId>h2</artifactId></dependency>
<dependency><artifactId>mysql-connector-j</artifactId></dependency>
<dependency><artifactId>postgresql</artifactId></dependency>
</dependencies></project>
-- src/main/resources/application.properties --
database=h2
-- src/main/resources/application-mysql.properties --
spring.datasource.url=${MYSQL_URL:jdbc:mysql://localhost/petclinic}
spring.datasource.username=${MYSQL_USER:petclinic}
-- src/main/resources/application-postgres.properties --
spring.datasource.url=${POSTGRES_URL:jdbc:postgresql://localhost/petclinic}
-- src/main/resources/db/h2/schema.sql --
CREATE TABLE pets (id INTEGER);
-- src/main/resources/db/mysql/schema.sql --
CREATE TABLE IF NOT EXISTS pets (id INT);
-- src/main/resources/db/postgres/schema.sql --
CREATE TABLE IF NOT EXISTS pets (id INT);
`,
		want: []string{
			"run: ./mvnw -q spring-boot:run   # GUESS: because pom.xml depends on Spring Boot",
			"  MYSQL_URL: jdbc:mysql://127.0.0.1:3306/shop", "  MYSQL_USER: root",
			"  SPRING_PROFILES_ACTIVE: mysql",
			"schema: src/main/resources/db/mysql/schema.sql   # GUESS: because src/main/resources/db/mysql/schema.sql has CREATE TABLE",
		},
		missing: []string{"buyer", "reset.sql", "never"},
	},
}
