import time
import uuid


def lock(redis, key):
    """Waits for the lock, for a while. Returns what unlock must know, None when it stays taken."""
    token = uuid.uuid4().hex
    for _ in range(10):
        if redis.set(key, token, nx=True, px=5000):
            return token
        time.sleep(0.02)
    return None


def unlock(redis, key, token):
    """Gives the lock back."""
    redis.delete(key)
