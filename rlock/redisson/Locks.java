import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Calls the locks of Redisson as its standard input says, for rlock/redisson_test.go.
 *
 * <p>Arguments: the address of Redis, and lockWatchdogTimeout in milliseconds. A line of input is
 * "number thread kind name call milliseconds". Each thread makes its calls one after the other, since
 * Redisson's holder is a thread. A line of output is the number, and "ok VALUE" or "failed CLASS".
 */
public class Locks {
  /** An inner unlock sets the lease anew, and only the object that took the lock knows its length. */
  static final Map<String, RLock> LOCKS = new ConcurrentHashMap<>();

  public static void main(String[] args) throws Exception {
    Config config = new Config();
    config.setLockWatchdogTimeout(Long.parseLong(args[1]));
    config.useSingleServer().setAddress(args[0]).setConnectionMinimumIdleSize(1);
    RedissonClient redisson = Redisson.create(config);
    System.out.println("0 ok ");
    Map<String, ExecutorService> threads = new HashMap<>();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = input.readLine()) != null; ) {
      String[] words = line.split(" ");
      threads
          .computeIfAbsent(words[1], name -> Executors.newSingleThreadExecutor())
          .execute(() -> answer(redisson, words));
    }
    System.exit(0); // a thread may still wait for a lock
  }

  static void answer(RedissonClient redisson, String[] words) {
    String result;
    try {
      result = "ok " + call(redisson, words[2], words[3], words[4], Long.parseLong(words[5]));
    } catch (Exception e) {
      result = "failed " + e;
    }
    System.out.println(words[0] + " " + result.replace('\n', ' '));
  }

  static Object call(RedissonClient redisson, String kind, String name, String call, long milliseconds) throws Exception {
    RLock lock =
        LOCKS.computeIfAbsent(
            kind + name, key -> kind.equals("fair") ? redisson.getFairLock(name) : redisson.getLock(name));
    switch (call) {
      case "lock": // with -1, the watchdog renews it
        lock.lock(milliseconds, TimeUnit.MILLISECONDS);
        return "";
      case "token":
        return redisson.getFencedLock(name).lockAndGetToken(milliseconds, TimeUnit.MILLISECONDS);
      case "try":
        return lock.tryLock(milliseconds, TimeUnit.MILLISECONDS);
      case "holds":
        return lock.getHoldCount();
      case "unlock":
        lock.unlock();
        return "";
      default:
        throw new IllegalArgumentException(call);
    }
  }
}
