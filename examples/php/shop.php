<?php
// A small shop: PDO under it, phpredis for the lock. A router for PHP's own server:
//
//   MODE=naive|for-update|redis-lock php -S 127.0.0.1:8080 shop.php
declare(strict_types=1);

const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

// Connections are persistent: the process keeps them from one request to the next.
function database(): PDO
{
    $port = getenv('MYSQL_PORT') ?: '3306';
    return new PDO("mysql:host=127.0.0.1;port=$port;dbname=shop", 'root', '', [
        PDO::ATTR_PERSISTENT => true,
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
    ]);
}

function redis(): Redis
{
    $redis = new Redis();
    $redis->pconnect('127.0.0.1', (int) (getenv('REDIS_PORT') ?: 6379));
    return $redis;
}

/** Reports whether a unit was left. */
function sell(PDO $db, int $item, string $lock = ''): bool
{
    $select = $db->prepare("SELECT stock FROM items WHERE id = ?$lock");
    $select->execute([$item]);
    $stock = $select->fetchColumn();
    if ($stock === false || $stock < 1) {
        return false;
    }
    $db->prepare('UPDATE items SET stock = ? WHERE id = ?')->execute([$stock - 1, $item]);
    $db->prepare('INSERT INTO orders (item_id, buyer) VALUES (?, ?)')->execute([$item, uuid()]);
    return true;
}

function forUpdate(int $item): bool
{
    $db = database();
    $db->beginTransaction();
    try {
        $sold = sell($db, $item, ' FOR UPDATE');
        $db->commit();
        return $sold;
    } catch (Throwable $e) {
        $db->rollBack();
        throw $e;
    }
}

/** As naive, under a lease of five seconds; null when the lock stays taken. */
function redisLock(int $item): ?bool
{
    $redis = redis();
    $key = "lock:$item";
    $token = uuid();
    for ($tries = 0; $tries < 10; $tries++) {
        if ($redis->set($key, $token, ['nx', 'px' => 5000])) {
            try {
                return sell(database(), $item);
            } finally {
                $redis->eval(RELEASE, [$key, $token], 1);
            }
        }
        usleep(20_000);
    }
    return null;
}

function uuid(): string
{
    $bytes = random_bytes(16);
    $bytes[6] = chr(ord($bytes[6]) & 0x0f | 0x40);
    $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);
    return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
}

function buy(int $item): ?bool
{
    return match (getenv('MODE')) {
        'naive' => sell(database(), $item),
        'for-update' => forUpdate($item),
        'redis-lock' => redisLock($item),
    };
}

function answer(string $method, string $path): array
{
    if ($path === '/healthz') {
        return [200, 'ok'];
    }
    if ($method !== 'POST' || $path !== '/buy') {
        return [404, 'not found'];
    }
    try {
        return match (buy((int) ($_GET['item'] ?? 0))) {
            true => [200, 'bought'],
            false => [409, 'sold out'],
            null => [503, 'busy'],
        };
    } catch (Throwable $e) {
        error_log($e->getMessage());
        return [500, 'error'];
    }
}

[$status, $text] = answer($_SERVER['REQUEST_METHOD'], parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
http_response_code($status);
echo $text, "\n";
