// libpqxx. Runs the calls that driver_calls.t writes, and says what came of each; see README.md
// here.
#include <cctype>
#include <fstream>
#include <iostream>
#include <optional>
#include <pqxx/pqxx>
#include <sstream>
#include <string>
#include <vector>

namespace {

// A value of the list, as a program has it: NULL has none.
std::optional<std::string> value_of(const std::string &text)
{
	const std::string kind = text.substr(0, text.find(':'));
	const std::string value = text.substr(text.find(':') + 1);
	if (kind == "null")
		return std::nullopt;
	return kind.find("[]") == std::string::npos ? value : "{" + value + "}";
}

constexpr pqxx::oid BOOL = 16;

std::string shown(const pqxx::field &field)
{
	if (field.is_null())
		return "null";
	if (field.type() == BOOL)
		return field.as<bool>() ? "true" : "false";
	return std::string("'") + field.c_str() + "'";
}

pqxx::result run(pqxx::connection &connection, const std::vector<std::string> &columns)
{
	pqxx::nontransaction work(connection);
	std::vector<std::optional<std::string>> values;
	for (size_t number = 1; number < columns.size(); number++)
		values.push_back(value_of(columns[number]));
	auto bound = [&](size_t number) {
		return values[number] ? values[number]->c_str() : static_cast<const char *>(nullptr);
	};
	switch (values.size())
	{
		case 0: return work.exec(columns[0]);
		case 1: return work.exec_params(columns[0], bound(0));
		case 2: return work.exec_params(columns[0], bound(0), bound(1));
		case 3: return work.exec_params(columns[0], bound(0), bound(1), bound(2));
		default: return work.exec_params(columns[0], bound(0), bound(1), bound(2), bound(3));
	}
}

std::vector<std::string> notices;

class Listener : public pqxx::errorhandler
{
public:
	explicit Listener(pqxx::connection &connection) : pqxx::errorhandler(connection) {}

	bool operator()(const char message[]) noexcept override
	{
		notices.emplace_back(message);
		return true;
	}
};

std::vector<std::string> said(pqxx::connection &connection, const std::vector<std::string> &columns)
{
	std::string rows;
	try
	{
		for (const auto &row : run(connection, columns))
		{
			rows += rows.empty() ? "" : " ";
			for (pqxx::row::size_type column = 0; column < row.size(); column++)
				rows += (column ? "|" : "") + shown(row[column]);
		}
		return {rows, "", "", "", ""};
	}
	catch (const pqxx::sql_error &error)
	{
		const std::string text = error.what();
		std::vector<std::string> result{"error " + error.sqlstate()};
		for (const char *field : {"DETAIL:", "HINT:", "SCHEMA", "CONSTRAINT"})
			result.push_back(text.find(field) == std::string::npos ? "" : text);
		return result;
	}
}

}  // namespace

int main(int, char **arguments)
{
	pqxx::connection connection("");
	Listener listener(connection);
	std::ifstream calls(arguments[1]);
	for (std::string line; std::getline(calls, line);)
	{
		std::vector<std::string> columns;
		size_t from = 0;
		for (size_t to; (to = line.find('\t', from)) != std::string::npos; from = to + 1)
			columns.push_back(line.substr(from, to - from));
		columns.push_back(line.substr(from));
		notices.clear();
		std::vector<std::string> all = said(connection, columns);
		all.insert(all.end(), notices.begin(), notices.end());
		for (size_t number = 0; number < all.size(); number++)
		{
			std::istringstream words(all[number]);
			std::cout << (number ? "\t" : "");
			bool first = true;
			for (std::string word; words >> word; first = false)
				std::cout << (first ? "" : " ") << word;
		}
		std::cout << std::endl;
	}
}
