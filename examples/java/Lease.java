/*
 * A lease that is renewed in the background during the work, and that tells the program when it is
 * lost. The constructor waits until it has it:
 *
 *   try (Lease lease = new Lease(
 *           url, "leader", "mailer", "worker-1", 30000, reason -> worker.interrupt())) {
 *       for (Letter letter : letters) {
 *           lease.throwIfLost();            // before each step; lease.sleep(), not Thread.sleep()
 *           connection.setAutoCommit(false);
 *           lease.check(connection);            // in each transaction that writes
 *           ...
 *           connection.commit();
 *           send(letter, lease.token());        // everything outside the database compares tokens
 *       }
 *   }
 *
 * As a program it shows that, with a report that has a line for each step. Start it several times,
 * with the name of the worker, the number of steps, how many seconds to sleep after each, the TTL,
 * and how long to wait for the lease:
 *
 *   javac -cp /usr/share/java/postgresql.jar Lease.java
 *   java -cp .:/usr/share/java/postgresql.jar Lease \
 *       'jdbc:postgresql://localhost/shop' worker-1 100 2 30
 *
 * Table: report (line bigint GENERATED ALWAYS AS IDENTITY, worker text, token bigint)
 */
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Held until close(), or until it is lost. A thread renews it on a connection of its own, at each
 * third of its TTL. If that fails, it tries again on a new connection, until no renewal has
 * succeeded for a whole TTL. That time begins before the call that succeeded, and is measured by
 * the monotonic clock.
 */
public class Lease implements AutoCloseable {
    /** Somebody else may have the lease: stop the work. */
    public static class Lost extends SQLException {
        private static final long serialVersionUID = 1;

        Lost(String reason) {
            super(reason);
        }
    }

    /** Somebody else had the lease for as long as we were willing to wait. */
    public static class Taken extends SQLException {
        private static final long serialVersionUID = 1;

        Taken() {
            super("somebody else has the lease");
        }
    }

    private final String url;
    private final String namespace;
    private final String name;
    private final String owner;
    private final long ttl;                                     // times are in milliseconds
    private final Consumer<String> onLost;
    private final Thread thread = new Thread(this::keep, "lease");
    private final Thread atExit = new Thread(this::stop);       // Ctrl-C and SIGTERM
    private final CountDownLatch done = new CountDownLatch(1);
    private final CountDownLatch wake = new CountDownLatch(1);  // for those in sleep()
    private Connection connection;
    private String warning;                                     // of the last answer, or null
    private Long token;
    private volatile long until;                                // on the monotonic clock
    private volatile String lost;                               // why it is lost, or null

    /**
     * Waits without a limit. onLost is called with the reason at once, in whichever thread finds
     * out.
     */
    public Lease(String url, String namespace, String name, String owner, long ttl,
            Consumer<String> onLost) throws SQLException {
        this(url, namespace, name, owner, ttl, Long.MAX_VALUE / 2, onLost);
    }

    /** Waits for so long, and then throws Taken. */
    public Lease(String url, String namespace, String name, String owner, long ttl, long timeout,
            Consumer<String> onLost) throws SQLException {
        this.url = url;
        this.namespace = namespace;
        this.name = name;
        this.owner = owner;
        this.ttl = ttl;
        this.onLost = onLost;
        take(now() + timeout);
        if (warning != null) {
            lost = "the grant is not confirmed: " + warning;
            end();
            throw new Lost(lost);
        }
        thread.setDaemon(true);
        thread.start();
        Runtime.getRuntime().addShutdownHook(atExit);
    }

    /**
     * Ends the lease, or throws Lost. (If the work has thrown something else, that one has Lost
     * among its suppressed exceptions.)
     */
    @Override
    public void close() throws SQLException {
        done.countDown();
        try {
            Runtime.getRuntime().removeShutdownHook(atExit);
        } catch (IllegalStateException shutdownHasBegun) {
            // It ends the lease.
        }
        boolean interrupted = false;
        while (thread.isAlive()) {              // not for longer than a third of the TTL
            try {
                thread.join();
            } catch (InterruptedException perhapsOfOnLost) {
                interrupted = true;
            }
        }
        isLost();                               // as of now, not of when the server has answered
        end();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        if (lost != null) {
            throw new Lost(lost);
        }
    }

    // ---- For the work ---------------------------------------------------------------------------

    public long token() {
        return token;
    }

    public boolean isLost() {
        // Not only the thread looks at the clock: if the process was stopped, the work may go on
        // before the thread does.
        if (now() >= until) {
            lose("no renewal has succeeded for " + ttl + " ms");
        }
        return lost != null;
    }

    public void throwIfLost() throws Lost {
        if (isLost()) {
            throw new Lost(lost);
        }
    }

    /** Ends by Lost as soon as the lease is lost. */
    public void sleep(long millis) throws Lost, InterruptedException {
        wake.await(millis, TimeUnit.MILLISECONDS);
        throwIfLost();
    }

    /**
     * In a transaction that writes: Lost, or nobody else gets the lease before the transaction has
     * ended.
     */
    public void check(Connection work) throws SQLException {
        throwIfLost();
        try (PreparedStatement check =
                work.prepareStatement("SELECT advisory.check_lease(?, ?, ?)")) {
            check.setString(1, namespace);
            check.setString(2, name);
            check.setLong(3, token);
            check.execute();
        } catch (SQLException error) {
            if (!"55000".equals(error.getSQLState())) {
                throw error;
            }
            lose(error.getMessage());
            throw new Lost(lost);
        }
    }

    // ---- Behind it ------------------------------------------------------------------------------

    /**
     * Waits in several short calls. The TTL of one that waited for long could be over by the time
     * that it began.
     *
     * If the connection is lost meanwhile, or the server restarts or fails over, it goes on with a
     * new connection. (If the answer was lost that we have the lease, it is free again when its TTL
     * is over.) But if the server cannot be reached to begin with, the error comes out.
     */
    private void take(long giveUp) throws SQLException {
        boolean hasAnswered = false;
        // The driver's first connection can take as long as a short TTL.
        connect(Math.max(ttl, 10000));
        for (;;) {
            long wait = Math.max(0, Math.min(ttl / 3, giveUp - now()));
            until = now() + ttl;
            try {
                token = (Long) ask(wait + ttl / 3,
                    "SELECT token FROM advisory.try_lease(?, ?, ?::interval, ?::interval, ?)",
                    namespace, name, ttl + " ms", wait + " ms", owner);
                hasAnswered = true;
                if (token != null) {
                    return;
                }
            } catch (SQLException error) {
                if (!hasAnswered || !isOfConnection(error) || now() >= giveUp) {
                    throw error;
                }
                try {
                    Thread.sleep(ttl / 30);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                    throw error;
                }
                continue;
            }
            if (now() >= giveUp) {
                disconnect();
                throw new Taken();
            }
        }
    }

    /**
     * Of the network, or of a server that ends, starts, has no connection left, or is a standby
     * now?
     */
    private static boolean isOfConnection(SQLException error) {
        return error.getSQLState() == null || error.getSQLState().matches("(08|53|57).*|25006");
    }

    private static long now() {
        return System.nanoTime() / 1000000;
    }

    private void lose(String reason) {
        synchronized (wake) {
            if (lost != null) {
                return;
            }
            lost = reason;
        }
        wake.countDown();
        onLost.accept(reason);
    }

    private void keep() {
        long pause = ttl / 3;
        try {
            while (!done.await(pause, TimeUnit.MILLISECONDS)) {
                try {
                    renew();
                    pause = Math.max(0, until - ttl * 2 / 3 - now());
                } catch (SQLException error) {
                    // Then again, on a new connection if it was lost.
                    pause = ttl / 30;
                }
                if (isLost()) {
                    return;
                }
            }
        } catch (InterruptedException error) {
            lose("the thread that renews it was interrupted");
        }
    }

    private void renew() throws SQLException {
        long before = now();
        Object expiresAt = ask(Math.min(ttl / 3, until - before),
            "SELECT advisory.renew_lease(?, ?, ?)", namespace, name, token);
        if (expiresAt == null) {
            lose("it was ended, or somebody else has it");
        } else if (warning == null) {
            until = before + ttl;
        } else {
            throw new SQLException("the renewal is not confirmed: " + warning);
        }
    }

    /** The program ends, perhaps in the middle of the work: nothing is left behind. */
    private void stop() {
        done.countDown();
        lose("the program was ended");
        end();
    }

    /** If the server does not answer, the lease ends by itself when its TTL is over. */
    private void end() {
        try {
            Object isEnded =
                ask(ttl / 3, "SELECT advisory.end_lease(?, ?, ?)", namespace, name, token);
            if (!(Boolean) isEnded) {
                lose("it was no longer ours at the end");
            }
        } catch (SQLException error) {
            // As said.
        }
        disconnect();
    }

    /**
     * The value, if it comes within this time. After an error the next call makes a new connection.
     *
     * If somebody cancels a COMMIT that waits for the synchronous standby, the server reports
     * success, and a WARNING. Its SQLSTATE is 01000, as of others, and its text is in the server's
     * language. So any warning is taken for that one, but for the extension's own, which has no
     * translations: that the key has another name.
     */
    private synchronized Object ask(long millis, String sql, Object... values) throws SQLException {
        long giveUp = now() + millis;
        try {
            connect(millis);
            connection.setNetworkTimeout(Runnable::run, (int) Math.max(1, giveUp - now()));
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                for (int i = 0; i < values.length; i++) {
                    statement.setObject(i + 1, values[i]);
                }
                try (ResultSet row = statement.executeQuery()) {
                    warning = null;
                    for (SQLWarning notice = statement.getWarnings(); notice != null;
                            notice = notice.getNextWarning()) {
                        if (!"00000".equals(notice.getSQLState())
                                && !notice.getMessage().endsWith(" also has another name")) {
                            warning = notice.getMessage();
                        }
                    }
                    row.next();
                    return row.getObject(1);
                }
            }
        } catch (SQLException error) {
            disconnect();
            throw error;
        }
    }

    private synchronized void connect(long millis) throws SQLException {
        if (connection == null) {
            Properties properties = new Properties();
            properties.setProperty("loginTimeout", String.valueOf(Math.max(1, millis) / 1000.0));
            connection = DriverManager.getConnection(url, properties);
        }
    }

    private synchronized void disconnect() {
        try {
            if (connection != null) {
                connection.close();
            }
        } catch (SQLException error) {
            // It was lost before.
        }
        connection = null;
    }

    // ---- A program that uses it -----------------------------------------------------------------

    static void addLine(Connection connection, Lease lease, String worker) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO report (worker, token) VALUES (?, ?)")) {
            lease.check(connection);
            insert.setString(1, worker);
            insert.setLong(2, lease.token());
            insert.executeUpdate();
            connection.commit();
        } catch (SQLException error) {
            connection.rollback();
            throw error;
        }
    }

    public static void main(String[] arguments) throws SQLException, InterruptedException {
        String url = arguments[0] + (arguments[0].contains("?") ? "&" : "?") + "ApplicationName=";
        String worker = arguments[1];
        int steps = Integer.parseInt(arguments[2]);
        long pause = (long) (1000 * Double.parseDouble(arguments[3]));
        long ttl = (long) (1000 * Double.parseDouble(arguments[4]));
        long timeout = arguments.length > 5
            ? (long) (1000 * Double.parseDouble(arguments[5])) : Long.MAX_VALUE / 2;
        try (Lease lease = new Lease(url + worker + "-lease", "report", "daily", worker, ttl,
                timeout,
                reason -> System.out.println(worker + ": the lease is lost"));
             Connection connection = DriverManager.getConnection(url + worker)) {
            connection.setAutoCommit(false);
            System.out.println(worker + " has the lease, token " + lease.token());
            for (int step = 0; step < steps; step++) {
                addLine(connection, lease, worker);
                lease.sleep(pause);
            }
        } catch (Taken taken) {
            System.out.println(worker + " does not begin: " + taken.getMessage());
            System.exit(1);
        } catch (Lost lost) {
            System.out.println(worker + " stops: " + lost.getMessage());
            System.exit(1);
        }
        System.out.println(worker + " is done");
    }
}
