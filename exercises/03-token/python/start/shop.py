import time
import uuid


def lock(redis, key):
    """Waits for the lock for a while. Returns the value that unlock needs, or None without the lock."""
    token = uuid.uuid4().hex
    for _ in range(10):
        if redis.set(key, token, nx=True, px=5000):
            return token
        time.sleep(0.02)
    return None


def unlock(redis, key, token):
    """Releases the lock."""
    redis.delete(key)
