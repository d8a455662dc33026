/*
 * What JDBC sends, and what comes of it. Used by jdbc.t: each line says what was tried, what came,
 * what should.
 */
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.sql.*;
import java.util.*;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

public class Calls {
    static final UUID ID = UUID.fromString("00000000-0000-0000-0000-00000000000A");
    static final String NAME = "o'neill \\ \u2603";

    /** Binds the parameters of one call. */
    interface Binding {
        void bind(PreparedStatement statement) throws SQLException;
    }

    static Connection connection;
    static Connection watcher;
    static int pid;

    static void report(String what, Object got, Object expected) {
        System.out.println(what + "\t" + got + "\t" + expected);
    }

    /** README's line. */
    static long key(Object name) {
        try {
            byte[] bytes = ("jdbc" + "\0" + name).getBytes(StandardCharsets.UTF_8);
            return ByteBuffer.wrap(MessageDigest.getInstance("SHA-256").digest(bytes)).getLong();
        } catch (java.security.NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    static int pidOf(Connection of) throws SQLException {
        return of.unwrap(org.postgresql.PGConnection.class).getBackendPID();
    }

    /** The bigint keys that the connection holds, as another one sees them in the server's own
        view. */
    static SortedSet<Long> held() throws SQLException {
        SortedSet<Long> keys = new TreeSet<>();
        try (PreparedStatement locks = watcher.prepareStatement(
                "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks"
                + " WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid = ?")) {
            locks.setInt(1, pid);
            try (ResultSet rows = locks.executeQuery()) {
                while (rows.next()) {
                    keys.add(rows.getLong(1));
                }
            }
        }
        return keys;
    }

    static SortedSet<Long> keys(Object... names) {
        SortedSet<Long> keys = new TreeSet<>();
        for (Object name : names) {
            keys.add(key(name));
        }
        return keys;
    }

    /** What a statement returns in its first column, or the SQLSTATE. */
    static String result(PreparedStatement statement) throws SQLException {
        try {
            if (!statement.execute()) {
                return "done";
            }
            List<String> values = new ArrayList<>();
            try (ResultSet rows = statement.getResultSet()) {
                while (rows.next()) {
                    values.add(rows.getString(1));
                }
            }
            return String.join(" ", values);
        } catch (SQLException error) {
            return error.getSQLState();
        }
    }

    static void letGo() throws SQLException {
        if (!connection.getAutoCommit()) {
            connection.rollback();
        }
        run(connection, "SELECT pg_advisory_unlock_all()");
        if (!connection.getAutoCommit()) {
            connection.rollback();
        }
    }

    static void run(Connection on, String sql) throws SQLException {
        try (Statement statement = on.createStatement()) {
            statement.execute(sql);
        }
    }

    /** A call, more often than prepareThreshold (5), after which the driver uses a named statement
        and binary values. */
    static void call(String what, int times, String sql, Binding binding, String expected,
        Object... names) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int time = 1; time <= times; time++) {
                binding.bind(statement);
                report(what + ", call " + time + ": result", result(statement), expected);
                report(what + ", call " + time + ": those locks", held(), keys(names));
                letGo();
            }
        }
    }

    static void call(String what, String sql, Binding binding, String expected,
        Object... names) throws SQLException {
        call(what, 1, sql, binding, expected, names);
    }

    static void takesValues() throws SQLException {
        for (String function : new String[] {"lock", "xact_lock", "try_lock", "try_xact_lock"}) {
            String two = "SELECT advisory." + function + "(?, ?)";
            call(function + ", setString", 7, two,
                s -> { s.setString(1, "jdbc"); s.setString(2, NAME); }, "t", NAME);
            call(function + ", setLong", 7, two,
                s -> { s.setString(1, "jdbc"); s.setLong(2, 1L << 62); }, "t", 1L << 62);
            call(function + ", setInt", 7, two,
                s -> { s.setString(1, "jdbc"); s.setInt(2, -42); }, "t", -42);
            call(function + ", setShort", two,
                s -> { s.setString(1, "jdbc"); s.setShort(2, (short) 42); }, "t", 42);
            call(function + ", setObject(UUID)", 7, two,
                s -> { s.setString(1, "jdbc"); s.setObject(2, ID); }, "t", ID);
            call(function + ", setObject(String)", two,
                s -> { s.setObject(1, "jdbc"); s.setObject(2, NAME); }, "t", NAME);
            call(function + ", setObject(Long)", two,
                s -> { s.setObject(1, "jdbc"); s.setObject(2, 42L); }, "t", 42);
            call(function + ", setObject(OTHER), without a type", two,
                s -> { s.setObject(1, "jdbc", Types.OTHER); s.setObject(2, NAME, Types.OTHER); },
                "t", NAME);
            String cast = "SELECT advisory." + function + "(?, ?, ?::interval)";
            call(function + ", a timeout by setString and a cast", 7, cast,
                s -> { s.setString(1, "jdbc"); s.setString(2, NAME); s.setString(3, "1s"); },
                "t", NAME);
            String three = "SELECT advisory." + function + "(?, ?, ?)";
            call(function + ", a timeout as PGInterval", 7, three,
                s -> {
                    s.setString(1, "jdbc");
                    s.setLong(2, 42);
                    s.setObject(3, new PGInterval("1 s"));
                }, "t", 42);
            call(function + ", a timeout without a type", three,
                s -> {
                    s.setString(1, "jdbc");
                    s.setObject(2, ID);
                    s.setObject(3, "1s", Types.OTHER);
                }, "t", ID);
            call(function + ", setNull(NULL) as the timeout", three,
                s -> { s.setString(1, "jdbc"); s.setString(2, NAME); s.setNull(3, Types.NULL); },
                "t", NAME);
            call(function + ", setNull(OTHER) as the timeout", three,
                s -> { s.setString(1, "jdbc"); s.setLong(2, 42); s.setNull(3, Types.OTHER); },
                "t", 42);
            // No cast leads from varchar to interval, in no function.
            call(function + ", a timeout by setString alone", three,
                s -> { s.setString(1, "jdbc"); s.setString(2, NAME); s.setString(3, "1s"); },
                "42883");
        }
        String lock = "SELECT advisory.lock(?, ?)";
        call("setNull(VARCHAR)", lock,
            s -> { s.setString(1, "jdbc"); s.setNull(2, Types.VARCHAR); }, "22004");
        call("setNull(BIGINT)", lock,
            s -> { s.setString(1, "jdbc"); s.setNull(2, Types.BIGINT); }, "22004");
        call("setNull(OTHER)", lock,
            s -> { s.setString(1, "jdbc"); s.setNull(2, Types.OTHER); }, "22004");
        call("setString(null)", lock,
            s -> { s.setString(1, "jdbc"); s.setString(2, null); }, "22004");
        call("setObject(null)", lock,
            s -> { s.setString(1, "jdbc"); s.setObject(2, null); }, "22004");
        call("a cast to text", "SELECT advisory.lock(?::text, ?::text)",
            s -> { s.setString(1, "jdbc"); s.setLong(2, 42); }, "t", 42);
        call("a cast to uuid", "SELECT advisory.lock(?, ?::uuid)",
            s -> { s.setString(1, "jdbc"); s.setString(2, ID.toString().toUpperCase()); }, "t", ID);
        try (PreparedStatement statement = connection.prepareStatement(lock)) {
            // The driver has to prepare it again, for another function.
            for (int time = 0; time < 14; time++) {
                statement.setString(1, "jdbc");
                if (time % 2 == 0) {
                    statement.setLong(2, 42);
                } else {
                    statement.setString(2, NAME);
                }
                report("types in turn", result(statement), "t");
                report("types in turn: that lock", held(), time % 2 == 0 ? keys(42) : keys(NAME));
                letGo();
            }
        }
        call("lock and unlock in one statement",
            "SELECT advisory.lock(?, ?) AND advisory.unlock(?, ?)", s -> {
                s.setString(1, "jdbc");
                s.setLong(2, 42);
                s.setString(3, "jdbc");
                s.setString(4, "42");
            }, "t");
    }

    static void takesArrays() throws SQLException {
        String all = "SELECT advisory.lock_all(?, ?)";
        for (String type : new String[] {"text", "varchar"}) {
            Array names = connection.createArrayOf(type, new String[] {"b", "a", NAME});
            call("lock_all, " + type + "[]", 7, all,
                s -> { s.setString(1, "jdbc"); s.setArray(2, names); }, "t", "a", "b", NAME);
        }
        Array longs = connection.createArrayOf("bigint", new Long[] {3L, 1L, 1L << 62});
        call("lock_all, bigint[]", 7, all,
            s -> { s.setString(1, "jdbc"); s.setArray(2, longs); }, "t", 1, 3, 1L << 62);
        Array integers = connection.createArrayOf("integer", new Integer[] {3, 1});
        call("lock_all, integer[]", 7, all,
            s -> { s.setString(1, "jdbc"); s.setArray(2, integers); }, "t", 1, 3);
        Array ids = connection.createArrayOf("uuid", new UUID[] {ID});
        call("lock_all, uuid[]", 7, all,
            s -> { s.setString(1, "jdbc"); s.setArray(2, ids); }, "t", ID);
        Array none = connection.createArrayOf("text", new String[] {});
        call("lock_all, an empty array", all,
            s -> { s.setString(1, "jdbc"); s.setArray(2, none); }, "t");
        Array hole = connection.createArrayOf("text", new String[] {"a", null});
        call("lock_all, a null in it", all,
            s -> { s.setString(1, "jdbc"); s.setArray(2, hole); }, "22004");
        call("lock_all, setObject(String[])", all, s -> {
            s.setString(1, "jdbc");
            s.setObject(2, new String[] {"a", "b"});
        }, "t", "a", "b");
        call("lock_all, setObject(long[])", all,
            s -> { s.setString(1, "jdbc"); s.setObject(2, new long[] {1, 2}); }, "t", 1, 2);
        call("lock_all, text of an array", all,
            s -> { s.setString(1, "jdbc"); s.setString(2, "{a,b}"); }, "t", "a", "b");
        call("try_lock_any", 7, "SELECT * FROM advisory.try_lock_any(?, ?, ?)",
            s -> { s.setString(1, "jdbc"); s.setArray(2, longs); s.setInt(3, 2); }, "3 1", 1, 3);
        call("try_lock_any, uuid[]", "SELECT * FROM advisory.try_lock_any(?, ?)",
            s -> { s.setString(1, "jdbc"); s.setArray(2, ids); }, ID.toString(), ID);
    }

    static void awaits() throws SQLException {
        String one = "CALL advisory.await_lock(?, ?)";
        call("CALL, setString", 7, one,
            s -> { s.setString(1, "jdbc"); s.setString(2, NAME); }, "done", NAME);
        call("CALL, setLong", 7, one,
            s -> { s.setString(1, "jdbc"); s.setLong(2, 42); }, "done", 42);
        call("CALL, setObject(UUID)", 7, one,
            s -> { s.setString(1, "jdbc"); s.setObject(2, ID); }, "done", ID);
        call("CALL, without types", one, s -> {
            s.setObject(1, "jdbc", Types.OTHER);
            s.setObject(2, NAME, Types.OTHER);
        }, "done", NAME);
        call("CALL, a timeout in it", 7, "CALL advisory.await_lock(?, ?, '10 min')",
            s -> { s.setString(1, "jdbc"); s.setString(2, NAME); }, "done", NAME);
        call("CALL, a timeout by a cast", 7, "CALL advisory.await_lock(?, ?, ?::interval)",
            s -> { s.setString(1, "jdbc"); s.setString(2, NAME); s.setString(3, "10 min"); },
            "done", NAME);
        call("CALL, a timeout as PGInterval", 7, "CALL advisory.await_lock(?, ?, ?)",
            s -> {
                s.setString(1, "jdbc");
                s.setString(2, NAME);
                s.setObject(3, new PGInterval("10 min"));
            }, "done", NAME);
        call("CALL, setNull(OTHER) as the timeout", "CALL advisory.await_lock(?, ?, ?)",
            s -> { s.setString(1, "jdbc"); s.setString(2, NAME); s.setNull(3, Types.OTHER); },
            "done", NAME);
        try (CallableStatement statement = connection.prepareCall(one)) {
            for (int time = 1; time <= 7; time++) {
                statement.setString(1, "jdbc");
                statement.setString(2, NAME);
                report("prepareCall(CALL), call " + time, result(statement), "done");
                report("prepareCall(CALL): that lock, call " + time, held(), keys(NAME));
                letGo();
            }
        }
        // JDBC's own escape is made into a SELECT, unless the connection says
        // escapeSyntaxCallMode=callIfNoReturn.
        try (CallableStatement statement =
                connection.prepareCall("{call advisory.await_lock(?, ?)}")) {
            statement.setString(1, "jdbc");
            statement.setString(2, NAME);
            report("prepareCall({call}) of a procedure", result(statement), "42809");
        }
        letGo();
        try (CallableStatement statement =
                connection.prepareCall("{? = call advisory.lock(?, ?)}")) {
            statement.registerOutParameter(1, Types.BIT);
            statement.setString(2, "jdbc");
            statement.setLong(3, 42);
            statement.execute();
            report("prepareCall({? = call}) of a function", statement.getBoolean(1), true);
            report("prepareCall({? = call}) of a function: that lock", held(), keys(42));
        }
        letGo();
        try (Statement statement = connection.createStatement()) {
            statement.execute("CALL advisory.await_lock('jdbc', 'a')");
            report("a plain statement", held(), keys("a"));
        }
        letGo();
    }

    /** Where the driver sends BEGIN itself, in front of the first statement and without waiting for
        an answer. */
    static void awaitsInTransactions() throws SQLException {
        String sql = "CALL advisory.await_lock(?, ?)";
        Binding binding = s -> { s.setString(1, "jdbc"); s.setString(2, "a"); };
        connection.setAutoCommit(false);
        call("CALL in a transaction", 7, sql, binding, "done", "a");
        run(connection, "SELECT count(*) FROM pg_class");
        call("CALL after a query", sql, binding, "done", "a");
        run(connection, "CREATE TEMPORARY TABLE written ()");
        call("CALL after writing", sql, binding, "25001");
        try (Statement cursor = connection.createStatement()) {
            cursor.setFetchSize(5);         // a portal, of which a few rows are fetched at a time
            try (ResultSet rows = cursor.executeQuery("SELECT * FROM pg_class")) {
                rows.next();
                call("CALL beside a result that is still being fetched", sql, binding, "25001");
            }
        }
        letGo();
        connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        call("CALL in REPEATABLE READ", sql, binding, "25001");
        connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        connection.setAutoCommit(true);
        try (Statement batch = connection.createStatement()) {
            batch.addBatch("CALL advisory.await_lock('jdbc', 'a')");
            batch.addBatch("CALL advisory.await_lock('jdbc', 'b')");
            batch.executeBatch();
            report("a batch of calls", held(), keys("a", "b"));
        }
        letGo();
    }

    static void failsAsAProgramExpects() throws SQLException {
        run(watcher, "SELECT advisory.lock('jdbc', 'taken')");
        for (String sql : new String[] {
                "SELECT advisory.lock(?, ?, '20ms')",
                "SELECT advisory.xact_lock(?, ?, '0s')",
                "SELECT advisory.lock_shared(?, ?, '0s')",
                "CALL advisory.await_lock(?, ?, '20ms')"}) {
            for (boolean autocommit : new boolean[] {true, false}) {
                connection.setAutoCommit(autocommit);
                String what = sql + (autocommit ? ", autocommit: " : ", in a transaction: ");
                try (PreparedStatement statement = connection.prepareStatement(sql)) {
                    statement.setString(1, "jdbc");
                    statement.setString(2, "taken");
                    statement.execute();
                    report(what + "fails", false, true);
                } catch (PSQLException error) {
                    ServerErrorMessage server = error.getServerErrorMessage();
                    String holder = String.valueOf(pidOf(watcher));
                    report(what + "SQLState", error.getSQLState(), "55P03");
                    report(what + "schema and constraint",
                        server.getSchema() + "/" + server.getConstraint(), "jdbc/taken");
                    report(what + "message",
                        server.getMessage().contains("advisory lock \"jdbc/taken\""), true);
                    report(what + "detail",
                        server.getDetail().contains("Process " + holder + " of role ")
                        && server.getDetail().contains("application \"watcher\""), true);
                    report(what + "hint",
                        server.getHint().contains(
                            "advisory.terminate_holder('jdbc', 'taken', " + holder + ")"), true);
                }
                letGo();
                report(what + "nothing is held", held(), keys());
            }
        }
        connection.setAutoCommit(false);
        call("try_lock, and the transaction goes on", 7,
            "SELECT advisory.try_lock(?, ?) = false AND count(*) > 0 FROM pg_class",
            s -> { s.setString(1, "jdbc"); s.setString(2, "taken"); }, "t");
        connection.setAutoCommit(true);
        for (String sql : new String[] {
                "SELECT advisory.lock('jdbc', 'taken')",
                "CALL advisory.await_lock('jdbc', 'taken')"}) {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.setQueryTimeout(1);       // seconds, after which the driver cancels
                report(sql + ", setQueryTimeout", result(statement), "57014");
                report(sql + ", setQueryTimeout: nothing is held", held(), keys());
            }
        }
        run(watcher, "SELECT advisory.unlock('jdbc', 'taken')");
        try (Statement statement = connection.createStatement()) {
            try (ResultSet row =
                    statement.executeQuery("SELECT advisory.unlock('jdbc', 'taken')")) {
                row.next();
                report("unlock of what is not held", row.getBoolean(1), false);
            }
            report("unlock of what is not held: a warning",
                statement.getWarnings().getMessage().contains("jdbc/taken"), true);
        }
    }

    static String value(String sql) throws SQLException {
        try (Statement statement = watcher.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            return row.next() ? row.getString(1) : "no row";
        }
    }

    /** Does the session, while it waits, have a snapshot, which would be in the way of CREATE INDEX
        CONCURRENTLY? */
    static void waits(String what, String sql, int before, boolean snapshot) throws Exception {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, "taken");
            for (int time = 0; time < before; time++) {
                statement.execute();
            }
            letGo();
            run(watcher, "SELECT advisory.lock('jdbc', 'taken')");
            String[] came = new String[1];
            Thread waiter = new Thread(() -> {
                try {
                    came[0] = result(statement);
                } catch (SQLException error) {
                    came[0] = error.toString();
                }
            });
            waiter.start();
            String of = " FROM pg_stat_activity WHERE pid = " + pid;
            while (waiter.isAlive() && !value(
                "SELECT wait_event" + of + " AND wait_event_type = 'Lock'").equals("advisory")) {
                Thread.sleep(5);
            }
            report(what + ": has a snapshot",
                value("SELECT backend_xmin IS NOT NULL OR backend_xid IS NOT NULL" + of),
                snapshot ? "t" : "f");
            run(watcher, "SELECT advisory.unlock('jdbc', 'taken')");
            waiter.join();
            report(what + ": comes back", came[0], sql.startsWith("CALL") ? "done" : "t");
            report(what + ": holds the lock", held(), keys("taken"));
        }
        letGo();
    }

    static void waitsWithoutSnapshot() throws Exception {
        for (boolean autocommit : new boolean[] {true, false}) {
            connection.setAutoCommit(autocommit);
            for (int before : new int[] {0, 7}) {
                String what = ", after " + before + " calls, "
                    + (autocommit ? "autocommit" : "in a transaction");
                waits("SELECT" + what, "SELECT advisory.lock('jdbc', ?)", before, true);
                waits("CALL" + what, "CALL advisory.await_lock('jdbc', ?)", before, false);
            }
        }
        connection.setAutoCommit(true);
    }

    static void withOtherSettings(String url) throws SQLException {
        connection = DriverManager.getConnection(
            url + "&ApplicationName=calls&stringtype=unspecified");
        pid = pidOf(connection);
        call("stringtype=unspecified, lock", 7, "SELECT advisory.lock(?, ?, ?)",
            s -> { s.setString(1, "jdbc"); s.setString(2, NAME); s.setString(3, "1s"); },
            "t", NAME);
        call("stringtype=unspecified, a number", 7, "SELECT advisory.lock(?, ?, ?)",
            s -> { s.setString(1, "jdbc"); s.setLong(2, 42); s.setString(3, "1s"); }, "t", 42);
        call("stringtype=unspecified, digits", "SELECT advisory.lock(?, ?)",
            s -> { s.setString(1, "jdbc"); s.setString(2, "42"); }, "t", 42);
        call("stringtype=unspecified, lock_all", 7, "SELECT advisory.lock_all(?, ?, ?)",
            s -> { s.setString(1, "jdbc"); s.setString(2, "{a,b}"); s.setString(3, "1s"); },
            "t", "a", "b");
        call("stringtype=unspecified, CALL", 7, "CALL advisory.await_lock(?, ?, ?)",
            s -> { s.setString(1, "jdbc"); s.setString(2, NAME); s.setString(3, "1s"); },
            "done", NAME);
        connection.close();

        // The simple protocol: the driver writes values into the statement.
        connection = DriverManager.getConnection(
            url + "&ApplicationName=calls&preferQueryMode=simple");
        pid = pidOf(connection);
        call("preferQueryMode=simple, lock", "SELECT advisory.lock(?, ?)",
            s -> { s.setString(1, "jdbc"); s.setString(2, NAME); }, "t", NAME);
        call("preferQueryMode=simple, a number", "SELECT advisory.lock(?, ?)",
            s -> { s.setString(1, "jdbc"); s.setLong(2, 42); }, "t", 42);
        call("preferQueryMode=simple, CALL", "CALL advisory.await_lock(?, ?, '1s')",
            s -> { s.setString(1, "jdbc"); s.setString(2, NAME); }, "done", NAME);
        connection.setAutoCommit(false);
        call("preferQueryMode=simple, CALL in a transaction",
            "CALL advisory.await_lock(?, ?, '1s')",
            s -> { s.setString(1, "jdbc"); s.setString(2, NAME); }, "done", NAME);
        connection.close();

        connection = DriverManager.getConnection(
            url + "&ApplicationName=calls&escapeSyntaxCallMode=callIfNoReturn");
        pid = pidOf(connection);
        try (CallableStatement statement =
                connection.prepareCall("{call advisory.await_lock(?, ?)}")) {
            statement.setString(1, "jdbc");
            statement.setString(2, NAME);
            report("escapeSyntaxCallMode=callIfNoReturn, prepareCall({call})",
                result(statement), "done");
            report("escapeSyntaxCallMode=callIfNoReturn: that lock", held(), keys(NAME));
        }
        connection.close();
    }

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        System.setOut(new java.io.PrintStream(System.out, true, "UTF-8"));
        watcher = DriverManager.getConnection(url + "&ApplicationName=watcher");
        connection = DriverManager.getConnection(url + "&ApplicationName=calls");
        pid = pidOf(connection);
        connection.setAutoCommit(false);
        takesValues();
        takesArrays();
        connection.setAutoCommit(true);
        call("with autocommit, a transaction-level lock is gone at once",
            "SELECT advisory.xact_lock('jdbc', ?)",
            s -> s.setString(1, NAME), "t");
        call("with autocommit, a session-level lock is not", "SELECT advisory.lock('jdbc', ?)",
            s -> s.setString(1, NAME), "t", NAME);
        awaits();
        awaitsInTransactions();
        failsAsAProgramExpects();
        waitsWithoutSnapshot();
        connection.close();
        withOtherSettings(url);
        watcher.close();
        System.out.println("end");
    }
}
